import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import type { ManagerConfiguration } from '../configuration.ts';
import type { BuilderFleet, FleetStatus } from '../gearman/builder-fleet.ts';
import type { LeaderState } from '../leader-state.ts';

/** Everything that tasks share. */
export interface TaskContext {
  readonly state: LeaderState;
  readonly owner: string;
  /** Returns the current configuration. */
  readonly configuration: () => ManagerConfiguration;
  readonly fleet: Pick<BuilderFleet, 'run'>;
  /** Asks the job servers. */
  readonly fleetStatus: () => Promise<FleetStatus>;
  /** Returns their last answer. */
  readonly lastFleetStatus: () => FleetStatus;
  /** Milliseconds for which no builder has offered this image; undefined if one does. */
  readonly absence: (imageId: string) => number | undefined;
  /** Returns the configured provider of that name. */
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
  /** Wall clock for records: milliseconds since 1970. */
  readonly now: () => number;
  /** Monotonic clock for pauses and limits, in milliseconds. */
  readonly elapsed: () => number;
}
