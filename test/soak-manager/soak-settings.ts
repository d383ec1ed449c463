import type { ManagerConfiguration } from '@nodepool-builder/image-manager';

/** Settings of a soak's processes, in a file that they read at each start. */
export interface SoakSettings {
  readonly port: number;
  readonly cloud: string;
  readonly store: string;
  readonly diskimages: number;
  readonly providers: number;
  /** Generation of the configuration. A new one rebuilds everything. */
  readonly generation: number;
  /** Fraction of failing builds, from 0 to 1. */
  readonly faultRate: number;
}

/** Number of images to keep. */
export const KEEP = 2;

/** Names `image-1` to `image-<n>`. */
export function diskimageNames({ diskimages }: SoakSettings): readonly string[] {
  return Array.from({ length: diskimages }, (_, index) => `image-${index + 1}`);
}

/** Names `cloud-1` to `cloud-<n>`. */
export function providerNames({ providers }: SoakSettings): readonly string[] {
  return Array.from({ length: providers }, (_, index) => `cloud-${index + 1}`);
}

/** Configuration with short pauses, so that much happens in little time. */
export function managerConfiguration(settings: SoakSettings): ManagerConfiguration {
  const names = diskimageNames(settings);
  return {
    diskimages: names.map((name) => ({
      name,
      digest: `generation ${settings.generation}`,
      pause: false,
      rebuildAge: 86_400,
      keep: KEEP,
      buildTimeout: 60,
    })),
    providers: providerNames(settings).map((name) => ({
      name,
      pause: false,
      uploadTimeout: 60,
      images: names.map((diskimage) => ({ name: diskimage, diskimage, pause: false })),
    })),
    timing: { retryDelay: 0.3, maxRetryDelay: 3, orphanScanInterval: 2, absenceTimeout: 10 },
  };
}
