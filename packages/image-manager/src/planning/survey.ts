import type { ManagedDiskImage, ManagerConfiguration } from '../configuration.ts';
import type { Build, ManagerState, Upload } from '../records.ts';
import { newestFirst } from './age.ts';
import { succeeded } from './back-off.ts';
import { surveyTargets, type Target } from './targets.ts';

/** A disk image that is configured or has builds. */
export interface SurveyedDiskImage {
  readonly name: string;
  /** Undefined if the configuration no longer has it. */
  readonly entry: ManagedDiskImage | undefined;
  /** Newest first. */
  readonly builds: readonly Build[];
  /** Ready builds that are not withdrawn, newest first. Every provider should have the first. */
  readonly good: readonly Build[];
  /** May be withdrawn or deleted by now, which is no reason to build again at once. */
  readonly newestSuccess: Build | undefined;
  /** Targets that are configured to have it. */
  readonly targets: readonly Target[];
}

/** Configuration and state, indexed once for a planning pass. */
export interface Survey {
  /** By name. */
  readonly diskimages: ReadonlyMap<string, SurveyedDiskImage>;
  readonly targets: readonly Target[];
  /** By image-id. */
  readonly builds: ReadonlyMap<string, Build>;
  /** By image-id. */
  readonly uploadsOf: ReadonlyMap<string, readonly Upload[]>;
}

/** Indexes configuration and state. */
export function surveyOf(configuration: ManagerConfiguration, state: ManagerState): Survey {
  const entries = new Map(configuration.diskimages.map((entry) => [entry.name, entry]));
  const targets = surveyTargets(configuration.providers, entries, state);
  const buildsOf = Map.groupBy(state.builds.values(), ({ diskimage }) => diskimage);
  const targetsOf = Map.groupBy(targets, ({ binding }) => binding?.diskimage.name);
  const diskimages = new Map<string, SurveyedDiskImage>();
  for (const name of new Set([...entries.keys(), ...buildsOf.keys()])) {
    const ofName = buildsOf.get(name) ?? [];
    const builds = ofName.toSorted(newestFirst(ofName, (build) => build));
    diskimages.set(name, {
      name,
      entry: entries.get(name),
      builds,
      good: builds.filter((build) => build.state === 'ready' && !build.withdrawn),
      newestSuccess: builds.find(succeeded),
      targets: targetsOf.get(name) ?? [],
    });
  }
  const uploadsOf = Map.groupBy(state.uploads.values(), ({ imageId }) => imageId);
  return { diskimages, targets, builds: state.builds, uploadsOf };
}

/** Number of ready images to keep; at least 1, because the last good one must stay. */
export function keptOf({ keep }: ManagedDiskImage): number {
  return Math.max(1, keep);
}
