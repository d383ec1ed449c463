import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type BuilderProcess, builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import type { SoakSite } from './soak-site.ts';

/** A builder that is killed again and again, and started again each time. */
export class KilledBuilder {
  readonly #command: [command: string, args: string[]];
  readonly #longestLife: number;
  #builder: BuilderProcess;
  #kills = 0;
  #isStopped = false;

  /** @param longestLife - milliseconds that it may serve between two kills, at first */
  constructor(site: SoakSite, longestLife: number) {
    const [command, args] = builderCommand('-d', '-c', site.config);
    this.#command = ['env', [`OS_CLIENT_CONFIG_FILE=${site.clouds}`, command, ...args]];
    this.#longestLife = longestLife;
    this.#builder = spawnDaemon(this.#command);
  }

  get kills(): number {
    return this.#kills;
  }

  /**
   * Kills it at moments of chance, from when it serves on, until the signal aborts; then one serves. One that got
   * nothing done leaves the next one twice the time, so that a busy machine comes to an end, too.
   */
  async killUntil(signal: AbortSignal, done: () => number): Promise<void> {
    for (let limit = this.#longestLife; ; ) {
      await this.#builder.logged(/nodepool\.builder: serving /);
      const before = done();
      // The moment of the kill is what is left to chance: there is nothing to wait for.
      await delay(randomInt(limit), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await this.#builder.end('SIGKILL');
      if (this.#isStopped) return;
      this.#kills += 1;
      limit = done() > before ? this.#longestLife : limit * 2;
      this.#builder = spawnDaemon(this.#command);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#builder.end('SIGKILL');
  }
}
