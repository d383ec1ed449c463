import { waitUntil } from '../fixtures/wait-until.ts';
import { phaseOf } from './instance-orphans.ts';

/** Phases of a build: those in its record, and `publishing` once the record is gone. */
const PHASES = [
  'launching',
  'running',
  'cleaning',
  'cleaned',
  'stopped',
  'captured',
  'ending',
  'publishing',
] as const;

type Phase = (typeof PHASES)[number];

/** A phase of a build, or part of one. */
interface Stage {
  readonly phase: Phase;
  readonly from: number;
  readonly to: number;
}

/** Stages over which kills are spread evenly. Boot and steps are in one phase. */
const STAGES: readonly Stage[] = [
  { phase: 'launching', from: 0, to: 1 },
  { phase: 'running', from: 0, to: 0.7 },
  { phase: 'running', from: 0.7, to: 1 },
  ...PHASES.slice(2).map((phase) => ({ phase, from: 0, to: 1 })),
];

/** Time of a kill, in milliseconds after the beginning of a phase. */
export interface KillMoment {
  readonly phase: Phase;
  readonly milliseconds: number;
}

/** Duration of each phase. */
export class BuildStages {
  readonly #began: ReadonlyMap<Phase, number>;
  readonly #end: number;

  private constructor(began: ReadonlyMap<Phase, number>, end: number) {
    this.#began = began;
    this.#end = end;
  }

  /** Measures an undisturbed build. */
  static async watch(images: string, imageId: string, build: PromiseLike<unknown>): Promise<BuildStages> {
    const began = new Map<Phase, number>();
    const watched = new WatchedBuild(images, imageId, build);
    for (const phase of PHASES) {
      await watched.until(phase);
      began.set(phase, performance.now());
    }
    await build;
    return new BuildStages(began, performance.now());
  }

  /** @param part position in all stages, from 0 to 1 */
  moment(part: number): KillMoment {
    const index = Math.floor(part * STAGES.length);
    const { phase, from, to } = STAGES[index] as Stage;
    const next = PHASES[PHASES.indexOf(phase) + 1];
    const end = (next && this.#began.get(next)) ?? this.#end;
    const duration = end - (this.#began.get(phase) ?? end);
    return { phase, milliseconds: duration * (from + (to - from) * (part * STAGES.length - index)) };
  }
}

/** A build according to its record. */
export class WatchedBuild {
  readonly #images: string;
  readonly #imageId: string;
  #wasSeen = false;
  #isOver = false;

  /** @param build settles when the build is over */
  constructor(images: string, imageId: string, build: PromiseLike<unknown>) {
    this.#images = images;
    this.#imageId = imageId;
    const over = (): void => {
      this.#isOver = true;
    };
    void build.then(over, over);
  }

  /** Waits until it is over, or in this phase or a later one. */
  async until(wanted: Phase): Promise<void> {
    await waitUntil(`the build to be ${wanted}`, async () => {
      const current = await this.#phase();
      return this.#isOver || (current !== undefined && PHASES.indexOf(current) >= PHASES.indexOf(wanted));
    });
  }

  /** Current phase; undefined before the launch. */
  async #phase(): Promise<Phase | undefined> {
    const phase = (await phaseOf(this.#images, this.#imageId)) as Phase | undefined;
    this.#wasSeen ||= phase !== undefined;
    return phase ?? (this.#wasSeen ? 'publishing' : undefined);
  }
}
