import {
  DirectoryProvider,
  type ImageFormat,
  type ImageProvider,
  type Logger,
} from '@nodepool-builder/image-builder';
import { OpenStackProvider, type OpenStackProviderOptions } from '@nodepool-builder/provider-openstack';

/** What a provider is made of: an entry of `providers` in `nodepool.yaml`. */
export interface ProviderSettings {
  readonly name: string;
  /** The formats it takes, the best first. */
  readonly formats: readonly ImageFormat[];
  /** For `type: directory`: where it serves from. */
  readonly directory?: string;
  /** For `type: directory`: bytes a second, of all uploads together. */
  readonly bandwidthLimit?: number;
  /** For `type: directory`. */
  readonly logger?: Logger;
  /** For `type: openstack`: which cloud, and how images come there. */
  readonly openstack?: Omit<OpenStackProviderOptions, 'name' | 'formats'>;
}

/** The providers that there are, by `type`. A new one is one file and one line here. */
export const IMAGE_PROVIDERS: Readonly<Record<string, (settings: ProviderSettings) => ImageProvider>> = {
  directory: ({ openstack: _, directory = '', ...settings }) =>
    new DirectoryProvider({ ...settings, directory }),
  openstack: ({ name, formats, openstack }) => {
    if (openstack === undefined) throw new TypeError(`provider ${name} of type openstack has no cloud`);
    return new OpenStackProvider({ ...openstack, name, formats });
  },
};
