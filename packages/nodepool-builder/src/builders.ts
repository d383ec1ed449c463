import { IMAGE_BUILDERS, type ImageBuilderClass } from '@nodepool-builder/image-builder';
import { OnInstanceBuilder } from '@nodepool-builder/on-instance';
import { ZuulArtifactBuilder } from '@nodepool-builder/zuul-images';

/** The builders that the daemon has, by the name that `diskimages[].builder` uses. */
export const BUILDERS: Readonly<Record<string, ImageBuilderClass>> = {
  ...IMAGE_BUILDERS,
  'on-instance': OnInstanceBuilder,
  'zuul-artifact': ZuulArtifactBuilder,
};
