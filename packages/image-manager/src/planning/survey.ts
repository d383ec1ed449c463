import type { ManagedDiskImage, ManagerConfiguration } from '../configuration.ts';
import type { Build, ManagerState, Upload } from '../records.ts';
import { newestFirst } from './age.ts';
import { succeeded } from './back-off.ts';
import { type Place, surveyPlaces } from './places.ts';

/** A disk image that is configured or has builds. */
export interface SurveyedDiskImage {
  readonly name: string;
  /** Absent if it is no more in the configuration. */
  readonly entry: ManagedDiskImage | undefined;
  /** The newest first. */
  readonly builds: readonly Build[];
  /** The ready ones that are not withdrawn, the newest first: that one every provider should have. */
  readonly good: readonly Build[];
  /** Whatever became of it since: rolling back or deleting it is no reason to build again at once. */
  readonly newestSuccess: Build | undefined;
  /** The places that are configured to hold it. */
  readonly places: readonly Place[];
}

/** Configuration and state, indexed once for a planning pass. */
export interface Survey {
  /** By name. */
  readonly diskimages: ReadonlyMap<string, SurveyedDiskImage>;
  readonly places: readonly Place[];
  /** By image-id. */
  readonly builds: ReadonlyMap<string, Build>;
  /** By image-id. */
  readonly uploadsOf: ReadonlyMap<string, readonly Upload[]>;
}

/** Indexes configuration and state. */
export function surveyOf(configuration: ManagerConfiguration, state: ManagerState): Survey {
  const entries = new Map(configuration.diskimages.map((entry) => [entry.name, entry]));
  const places = surveyPlaces(configuration.providers, entries, state);
  const buildsOf = Map.groupBy(state.builds.values(), ({ diskimage }) => diskimage);
  const placesOf = Map.groupBy(places, ({ use }) => use?.diskimage.name);
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
      places: placesOf.get(name) ?? [],
    });
  }
  const uploadsOf = Map.groupBy(state.uploads.values(), ({ imageId }) => imageId);
  return { diskimages, places, builds: state.builds, uploadsOf };
}

/** How many ready ones are kept; at least 1, for the last good one must never go. */
export function keptOf({ keep }: ManagedDiskImage): number {
  return Math.max(1, keep);
}
