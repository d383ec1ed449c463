import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import type { ManagerConfiguration } from '../configuration.ts';
import type { BuilderFleet, Observation } from '../gearman/builder-fleet.ts';
import type { LedState } from '../led-state.ts';

/** What an act works with. */
export interface ActContext {
  readonly state: LedState;
  readonly owner: string;
  /** As it is in force now. */
  readonly configuration: () => ManagerConfiguration;
  readonly fleet: Pick<BuilderFleet, 'run'>;
  /** Asks the job servers anew. */
  readonly observe: () => Promise<Observation>;
  /** What they said last. */
  readonly lastObservation: () => Observation;
  /** Milliseconds for which no builder has offered this image; undefined if one does. */
  readonly absence: (imageId: string) => number | undefined;
  /** The configured provider of that name. */
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
  /** Milliseconds since 1970, for records. */
  readonly now: () => number;
  /** Milliseconds on a clock that is never set, for pauses and limits. */
  readonly elapsed: () => number;
}
