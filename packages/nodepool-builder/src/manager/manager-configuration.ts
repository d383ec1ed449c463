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

/** How long a build may run if `build-timeout` does not say: eight hours, as nodepool had it, in seconds. */
const BUILD_TIMEOUT = 28_800;

/** How long an upload may run if `image-upload-timeout` does not say: a day, in seconds, as builders end those that stall. */
const UPLOAD_TIMEOUT = 86_400;

/** The part of a configuration that a manager goes by. */
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
 * Of what makes an image another one. Formats are not in it: what a provider lacks is converted before the upload. Nor
 * are secrets: they are the builders', and a manager beside them need not know them.
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
    ...(zuul === undefined ? [] : [whatZuulBuilds(zuul)]),
    ...(onInstance === undefined ? [] : [whatIsMadeOnInstance(onInstance)]),
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}

/** Which builds are taken, and what of them; not how one gets at them. */
function whatZuulBuilds({
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

/** What is booted, and what is done to it; not how long anything may take, nor how one logs in. */
function whatIsMadeOnInstance({ provider, baseImage, shell, steps, sysprep }: OnInstance): unknown {
  return [provider, baseImage, shell, steps.map(({ run }) => run), sysprep];
}

/** In whatever order a file has its keys. */
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
