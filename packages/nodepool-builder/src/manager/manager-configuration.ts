import { createHash } from 'node:crypto';
import type {
  ManagedDiskImage,
  ManagedProvider,
  ManagerConfiguration,
} from '@nodepool-builder/image-manager';
import type { OnInstance } from '@nodepool-builder/on-instance';
import type { ZuulImage } from '@nodepool-builder/zuul-images';
import type {
  Configuration,
  DiskImageConfiguration,
  ProviderConfiguration,
} from '../configuration/configuration.ts';

/** Default of `build-timeout`: eight hours, as in nodepool, in seconds. */
const BUILD_TIMEOUT = 28_800;

/** Default of `image-upload-timeout`: a day, in seconds, because builders abort stalled uploads earlier. */
const UPLOAD_TIMEOUT = 86_400;

/** Extracts the parts of a configuration that the manager needs. */
export function toManagerConfiguration(configuration: Configuration): ManagerConfiguration {
  return {
    diskimages: configuration.diskimages.map(toManagedDiskImage),
    providers: configuration.providers.map(toManagedProvider),
    timing: configuration.manager.timing,
  };
}

function toManagedDiskImage(diskimage: DiskImageConfiguration): ManagedDiskImage {
  const { name, pause, rebuildAge, rebuildCron, zuul, keep, buildTimeout = BUILD_TIMEOUT } = diskimage;
  return {
    name,
    digest: digestOf(diskimage),
    pause,
    ...(rebuildAge !== undefined && { rebuildAge }),
    ...(rebuildCron !== undefined && { rebuildCron }),
    ...(zuul !== undefined && { followsZuul: true }),
    keep,
    buildTimeout,
  };
}

/**
 * Computes a digest of the settings that define the image's content. It excludes formats, because a builder converts a
 * missing format before the upload, and secrets, because only builders need to know them.
 */
function digestOf(diskimage: DiskImageConfiguration): string {
  const {
    builder,
    elements,
    release,
    envVars = {},
    secrets = [],
    options,
    command,
    qemuImgOptions,
    zuul,
    onInstance,
  } = diskimage;
  const known = Object.entries(envVars).filter(([, value]) => !secrets.includes(value as string));
  const content = [
    builder,
    elements,
    String(release),
    sorted(Object.fromEntries(known)),
    sorted(options),
    command,
    ...(qemuImgOptions === undefined ? [] : [qemuImgOptions]),
    ...(zuul === undefined ? [] : [zuulContent(zuul)]),
    ...(onInstance === undefined ? [] : [onInstanceContent(onInstance)]),
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}

/** Returns the settings that select builds and artifacts, without those for access. */
function zuulContent({
  apiUrl,
  tenant,
  project,
  pipelines,
  job,
  branch,
  imageName,
  artifacts,
}: ZuulImage): unknown {
  return [apiUrl, tenant, project, pipelines, job, branch, imageName, artifacts];
}

/** Returns base image and steps, without time limits and logins. */
function onInstanceContent({ provider, baseImage, shell, steps, sysprep }: OnInstance): unknown {
  return [provider, baseImage, shell, steps.map(({ run }) => run), sysprep];
}

/** Sorts by key, so that the order in the file does not matter. */
function sorted(mapping: Readonly<Record<string, unknown>> = {}): readonly (readonly [string, unknown])[] {
  return Object.entries(mapping).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function toManagedProvider({
  name,
  pause,
  imageUploadTimeout,
  images,
}: ProviderConfiguration): ManagedProvider {
  return {
    name,
    pause,
    uploadTimeout: imageUploadTimeout ?? UPLOAD_TIMEOUT,
    images: images.flatMap((image) =>
      image.diskimage === undefined
        ? []
        : [{ name: image.name, diskimage: image.diskimage, pause: image.pause }],
    ),
  };
}
