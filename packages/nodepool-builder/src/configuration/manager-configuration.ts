import { BUILD_TIMEOUT } from '@nodepool-builder/image-builder/internal';
import type { ManagerConfiguration } from '@nodepool-builder/image-manager';
import type { Configuration } from './configuration.ts';

/** Default of `image-upload-timeout`, in seconds. A day is enough, because builders abort stalled uploads earlier. */
const UPLOAD_TIMEOUT = 86_400;

/** Extracts the parts of a configuration that the manager needs. */
export function toManagerConfiguration({
  diskimages,
  providers,
  manager,
}: Configuration): ManagerConfiguration {
  return {
    diskimages: diskimages.map((diskimage) => {
      const { name, digest, pause, rebuildAge, rebuildCron, keep } = diskimage;
      return {
        name,
        digest,
        pause,
        ...(rebuildAge !== undefined && { rebuildAge }),
        ...(rebuildCron !== undefined && { rebuildCron }),
        ...(diskimage.isImported && { isImported: true }),
        keep,
        buildTimeout: diskimage.buildTimeout ?? BUILD_TIMEOUT,
      };
    }),
    providers: providers.map(({ name, entry }) => ({
      name,
      pause: entry.pause,
      uploadTimeout: entry['image-upload-timeout'] ?? UPLOAD_TIMEOUT,
      images: entry.images.flatMap(({ diskimage, ...image }) =>
        diskimage === undefined ? [] : [{ name: image.name, diskimage, pause: image.pause }],
      ),
    })),
    timing: {
      retryDelay: manager['retry-delay'],
      maxRetryDelay: manager['max-retry-delay'],
      orphanScanInterval: manager['orphan-scan-interval'],
      absenceTimeout: manager['absence-timeout'],
    },
  };
}
