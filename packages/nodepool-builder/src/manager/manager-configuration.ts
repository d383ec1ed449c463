import type {
  ManagedDiskImage,
  ManagedProvider,
  ManagerConfiguration,
} from '@nodepool-builder/image-manager';
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
  const {
    name,
    pause,
    rebuildAge,
    rebuildCron,
    importsBuilds,
    keep,
    buildTimeout = BUILD_TIMEOUT,
  } = diskimage;
  return {
    name,
    digest: diskimage.digest,
    pause,
    ...(rebuildAge !== undefined && { rebuildAge }),
    ...(rebuildCron !== undefined && { rebuildCron }),
    ...(importsBuilds && { followsZuul: true }),
    keep,
    buildTimeout,
  };
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
