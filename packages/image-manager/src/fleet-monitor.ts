import type { BuilderFleet, FleetStatus } from './gearman/builder-fleet.ts';
import type { OfferedFunctions } from './planning/pass.ts';

export interface FleetMonitorOptions {
  readonly fleet: Pick<BuilderFleet, 'status'>;
  /** Status to begin with. */
  readonly status: FleetStatus;
  /** Returns the ids of the images that some builder should offer. */
  readonly expected: () => Iterable<string>;
  /** Called when builders offer other functions than before. */
  readonly changed: () => void;
  /** Monotonic clock, in milliseconds. */
  readonly elapsed: () => number;
}

/** Keeps the last status of the builders, and since when images have been absent from all of them. */
export class FleetMonitor {
  readonly #options: FleetMonitorOptions;
  #status: FleetStatus;
  #absentSince: ReadonlyMap<string, number> = new Map();

  constructor(options: FleetMonitorOptions) {
    this.#options = options;
    this.#status = options.status;
  }

  /** The last known status. */
  get status(): FleetStatus {
    return this.#status;
  }

  /** Start of each absence on the monotonic clock, by image-id. */
  get absentSince(): ReadonlyMap<string, number> {
    return this.#absentSince;
  }

  /** Milliseconds for which no builder has offered an image; undefined if one does. */
  absence(imageId: string): number | undefined {
    const since = this.#absentSince.get(imageId);
    return since === undefined ? undefined : this.#options.elapsed() - since;
  }

  /** Asks the job servers. */
  async refresh(): Promise<FleetStatus> {
    const { fleet, changed } = this.#options;
    const status = await fleet.status();
    const before = this.#status;
    // Concurrent callers get the same status.
    if (status === before) return status;
    this.#status = status;
    if (!offersTheSame(before.offered, status.offered)) changed();
    if (status.isComplete) this.#updateAbsences(status.offered.uploads);
    return status;
  }

  #updateAbsences(offered: ReadonlySet<string>): void {
    const { expected, elapsed } = this.#options;
    const now = elapsed();
    const since = new Map<string, number>();
    for (const id of expected()) if (!offered.has(id)) since.set(id, this.#absentSince.get(id) ?? now);
    this.#absentSince = since;
  }
}

const KINDS = ['builds', 'uploads', 'deletes'] as const satisfies readonly (keyof OfferedFunctions)[];

function offersTheSame(a: OfferedFunctions, b: OfferedFunctions): boolean {
  return KINDS.every(
    (kind) => a[kind].size === b[kind].size && [...a[kind]].every((name) => b[kind].has(name)),
  );
}
