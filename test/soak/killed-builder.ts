import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type BuilderProcess, builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import type { SoakSite } from './soak-site.ts';

/** A builder that is repeatedly killed and restarted. */
export class KilledBuilder {
  readonly #command: [command: string, args: string[]];
  readonly #maxLifetime: number;
  #builder: BuilderProcess;
  #log: readonly string[] = [];
  #kills = 0;
  #isStopped = false;

  /** @param maxLifetime - max time in milliseconds that it serves between two kills */
  constructor(site: SoakSite, maxLifetime: number) {
    const [command, args] = builderCommand('-d', '-c', site.config, '--upload-workers', '16');
    const variables = Object.entries(site.environment).map(([name, value]) => `${name}=${value}`);
    this.#command = ['env', [...variables, command, ...args]];
    this.#maxLifetime = maxLifetime;
    this.#builder = spawnDaemon(this.#command);
  }

  get kills(): number {
    return this.#kills;
  }

  /** Lines logged by all its processes. */
  get log(): readonly string[] {
    return [...this.#log, ...this.#builder.log];
  }

  /** Kills it at random times while it serves, a number of times or until the signal aborts. Then lets it serve. */
  async killUntil(signal: AbortSignal, limit: number): Promise<void> {
    for (;;) {
      await this.#builder.logged(/nodepool\.builder: serving /);
      if (this.#kills >= limit) return;
      // The time of the kill is random, so there is no event to wait for.
      await delay(randomInt(this.#maxLifetime), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await this.#builder.end('SIGKILL');
      if (this.#isStopped) return;
      this.#kills += 1;
      this.#log = this.log;
      this.#builder = spawnDaemon(this.#command);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#builder.end('SIGKILL');
  }
}
