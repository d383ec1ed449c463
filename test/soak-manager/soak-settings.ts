import type { ManagerConfiguration } from '@nodepool-builder/image-manager';

/** What the processes of a soak are told, by a file: they read it again whenever they start. */
export interface SoakSettings {
  readonly port: number;
  readonly cloud: string;
  readonly store: string;
  readonly diskimages: number;
  readonly providers: number;
  /** Each generation is a change of the configuration, and so a rebuild of everything. */
  readonly generation: number;
  /** Which part of the builders' own work fails, from 0 to 1. */
  readonly faultRate: number;
}

/** How many images each place keeps. */
export const KEEP = 2;

/** `image-1` to `image-<n>`. */
export function diskimageNames({ diskimages }: SoakSettings): readonly string[] {
  return Array.from({ length: diskimages }, (_, index) => `image-${index + 1}`);
}

/** `cloud-1` to `cloud-<n>`. */
export function providerNames({ providers }: SoakSettings): readonly string[] {
  return Array.from({ length: providers }, (_, index) => `cloud-${index + 1}`);
}

/** Pauses are short, so that much happens in little time. */
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
    timing: { retryDelay: 0.3, longestRetryDelay: 3, leakInterval: 2, absenceLimit: 10 },
  };
}
