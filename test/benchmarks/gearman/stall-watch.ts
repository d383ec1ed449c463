import { PerformanceObserver } from 'node:perf_hooks';

/** Maximum stalls of an event loop, in milliseconds. */
export interface Stalls {
  /** Processor time of this thread. */
  readonly processor: number;
  /** Wall-clock time, which includes the time in which other programs used the processor. */
  readonly clock: number;
  /** Maximum pause for garbage collection, in wall-clock time. */
  readonly garbage: number;
}

/** Watches the event loop of this process. */
export class StallWatch {
  readonly #timer: NodeJS.Timeout;
  readonly #observer: PerformanceObserver;
  #longest = { processor: 0, clock: 0, garbage: 0 };

  /** Starts a timer of 1 ms, which measures the time between its calls. */
  constructor() {
    let [processor, clock] = [processorTime(), performance.now()];
    this.#timer = setInterval(() => {
      const [processorNow, now] = [processorTime(), performance.now()];
      this.#longest.processor = Math.max(this.#longest.processor, processorNow - processor);
      this.#longest.clock = Math.max(this.#longest.clock, now - clock - 1);
      [processor, clock] = [processorNow, now];
    }, 1);
    this.#observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) {
        this.#longest.garbage = Math.max(this.#longest.garbage, duration);
      }
    });
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** Returns the maximum stalls since the last call. */
  take(): Stalls {
    const longest = this.#longest;
    this.#longest = { processor: 0, clock: 0, garbage: 0 };
    return longest;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#observer.disconnect();
  }
}

/** Milliseconds that this thread has used. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
