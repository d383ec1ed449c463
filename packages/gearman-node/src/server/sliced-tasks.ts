/** Steps of one slice, about half a millisecond. */
const STEPS = 512;

/** Runs long tasks in slices, one after the other, so that connections are served in between. */
export class SlicedTasks {
  readonly #later: (slice: () => void) => void;
  readonly #tasks: Iterator<unknown>[] = [];

  /** @param later calls its argument after connections were served */
  constructor(later: (slice: () => void) => void) {
    this.#later = later;
  }

  /** Runs a task that yields after each step. A short task runs at once, unless others are running. */
  run(task: Iterator<unknown>): void {
    if (this.#tasks.push(task) === 1) this.#slice();
  }

  readonly #slice = (): void => {
    for (let step = 0; step < STEPS; step += 1) {
      const [task] = this.#tasks;
      if (!task) return;
      if (task.next().done) this.#tasks.shift();
    }
    this.#later(this.#slice);
  };
}
