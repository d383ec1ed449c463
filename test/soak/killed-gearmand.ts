import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';

/** Debian's gearmand, which is killed occasionally and loses its jobs. */
export class KilledGearmand {
  readonly #gearmand: Gearmand;
  #kills = 0;
  #restarted: Promise<void> = Promise.resolve();

  private constructor(gearmand: Gearmand) {
    this.#gearmand = gearmand;
  }

  static async start(): Promise<KilledGearmand> {
    return new KilledGearmand(await startGearmand());
  }

  get port(): number {
    return this.#gearmand.port;
  }

  get kills(): number {
    return this.#kills;
  }

  /** Kills it, and restarts it on the same port. */
  kill(): void {
    this.#kills += 1;
    this.#restarted = this.#restarted.then(() => this.#gearmand.restart());
  }

  /** Resolves when it serves. Rejects if it could not be restarted. */
  async restarted(): Promise<void> {
    await this.#restarted;
  }

  async stop(): Promise<void> {
    await this.#restarted.catch(() => undefined);
    await this.#gearmand.stop();
  }
}
