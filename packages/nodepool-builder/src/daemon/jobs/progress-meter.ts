import type { Progress } from '@nodepool-builder/image-builder';
import { attemptText, partDone, type Retry } from '@nodepool-builder/image-builder/internal';
import type { Reading } from '../../protocol/running-job.ts';

/** Progress of an operation, and the total number of bytes if it transfers a file. */
export interface MeteredProgress extends Progress {
  readonly size?: number;
}

/** Time over which the transfer rate is measured, in milliseconds. */
const WINDOW = 30_000;

/** Time from the first byte to the first rate, and between two samples, in milliseconds. */
const SAMPLE_INTERVAL = 1000;

/** Maximum part of an estimate by time. */
const MAX_BY_TIME = 0.95;

/** Part by which an estimate by time may exceed the reported part. A build beyond it is slower than the last one. */
const MAX_LEAD = 0.25;

/** Settings of a {@link ProgressMeter}. */
interface MeterOptions {
  /** Seconds that the operation took last time. Default: unknown. */
  readonly expected?: number | undefined;
  /** Returns the time in milliseconds. Default: `performance.now`. */
  readonly now?: () => number;
}

/**
 * Measures the rate of an operation and estimates the time left: of a transfer from its rate, of any other operation
 * from its previous duration. The first build has no estimate, because the speed of its parts differs too much.
 */
export class ProgressMeter {
  readonly #expected: number;
  readonly #now: () => number;
  readonly #started: number;
  /**
   * Times in milliseconds, and the parts done by then, from the first byte on. At most the first sample is older than
   * the window.
   */
  #samples: { readonly at: number; readonly part: number }[] = [];
  #part = 0;
  /** Time of the last change of the part. */
  #movedAt = 0;
  #size: number | undefined;
  /** Highest estimate by time. */
  #byTime = 0;
  #waiting: string | undefined;
  #phase: string | undefined;
  #retry: Pick<Reading, 'retrying' | 'retry-at'> | undefined;

  constructor({ expected = 0, now = () => performance.now() }: MeterOptions = {}) {
    this.#expected = expected * 1000;
    this.#now = now;
    this.#started = now();
  }

  update({ size, waiting, phase, ...progress }: MeteredProgress): void {
    this.#waiting = waiting;
    this.#phase = phase;
    const part = partDone(progress);
    if (part < this.#part) this.#samples = []; // the transfer starts again
    const at = this.#now();
    if (part !== this.#part) {
      this.#retry = undefined;
      this.#movedAt = at;
    }
    this.#part = part;
    this.#size = size;
    if (size === undefined || part === 0) return;
    const last = this.#samples.at(-1);
    if (last !== undefined && at - last.at < SAMPLE_INTERVAL) return;
    this.#samples.push({ at, part });
    while ((this.#samples[1]?.at ?? at) < at - WINDOW) this.#samples.shift();
  }

  /** Sets the last retry of a request; undefined once it has ended. */
  retry(retry: Retry | undefined): void {
    this.#retry = retry && {
      retrying: `${attemptText(retry)}, after ${retry.error.message}`,
      'retry-at': new Date(Date.now() + retry.delay * 1000).toISOString(),
    };
  }

  /** Returns the current progress. */
  read(): Reading {
    const elapsed = this.#now() - this.#started;
    const byTime = this.#expected > 0 ? elapsed / this.#expected : 0;
    const isSlower = this.#part > 0 && byTime > this.#part + MAX_LEAD;
    const estimate = Math.min(MAX_BY_TIME, isSlower ? this.#part + MAX_LEAD : byTime);
    const isWaiting = this.#waiting !== undefined || this.#retry !== undefined;
    if (!isWaiting) this.#byTime = Math.max(this.#byTime, estimate);
    const percent = Math.floor(Math.max(this.#byTime, this.#part) * 100);
    if (this.#waiting !== undefined) return { percent, waiting: this.#waiting };
    const phase = this.#phase !== undefined && { phase: this.#phase };
    if (this.#retry !== undefined) return { percent, ...phase, ...this.#retry };
    const speed = this.#size === undefined ? undefined : this.#speed();
    const left = this.#part === 1 || isSlower ? undefined : this.#timeLeft(elapsed, speed);
    return {
      percent,
      ...phase,
      ...(speed !== undefined && { 'bytes-per-second': Math.round(speed * 1000 * (this.#size ?? 0)) }),
      ...(left !== undefined && { 'seconds-left': Math.ceil(left / 1000) }),
    };
  }

  /** Part of the whole done per millisecond, in the last seconds; undefined at the beginning and after the end. */
  #speed(): number | undefined {
    const now = this.#now();
    const first = this.#samples.findLast(({ at }) => at <= now - WINDOW) ?? this.#samples[0];
    if (first === undefined || now - first.at < SAMPLE_INTERVAL || this.#part === 1) return undefined;
    if (now - this.#movedAt >= WINDOW) return 0;
    if (this.#part === first.part && now - first.at < WINDOW) return undefined; // a provider may report each part's end
    return (this.#part - first.part) / (now - first.at);
  }

  /** Time left in milliseconds. */
  #timeLeft(elapsed: number, speed: number | undefined): number | undefined {
    if (this.#size !== undefined) return speed ? (1 - this.#part) / speed : undefined;
    return elapsed < this.#expected ? this.#expected - elapsed : undefined;
  }
}
