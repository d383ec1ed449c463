import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { HashOrder } from './hash-worker.ts';

/** The program lies beside this file, with the same extension: `.ts` as source, `.js` when compiled. */
const PROGRAM = new URL(`./hash-worker${extname(import.meta.url)}`, import.meta.url);

interface Answer {
  readonly resolve: (value: string | undefined) => void;
  readonly reject: (reason: unknown) => void;
}

/** A thread that hashes. It keeps the process alive only while an answer is due. */
export class HashThread {
  /** The costs of the hashes that it has been given. */
  load = 0;
  /** Without the flags of this process: `--input-type`, for one, would forbid the program. */
  readonly #worker = new Worker(PROGRAM, { name: 'hash', execArgv: [] });
  readonly #due: Answer[] = [];
  #end: Error | undefined;

  constructor() {
    this.#worker.on('message', (value: string | undefined) => this.#answered()?.resolve(value));
    this.#worker.on('error', (error: Error) => this.#ended(error));
    this.#worker.on('exit', () => this.#ended(new Error('a thread that computes digests has ended')));
  }

  /** Whether it takes no more orders. */
  get dead(): boolean {
    return this.#end !== undefined;
  }

  /**
   * Has an order carried out, after those that were given before.
   *
   * @returns the digest, of an order for one
   * @throws what ended the thread
   */
  async ask(order: HashOrder): Promise<string | undefined> {
    if (this.#end !== undefined) throw this.#end;
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
    if (this.#due.length === 0) this.#worker.ref();
    this.#due.push({ resolve, reject });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage(order);
    return await promise;
  }

  /** Ends it. Answers that are due are rejected. */
  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  #answered(): Answer | undefined {
    const answer = this.#due.shift();
    if (this.#due.length === 0) this.#worker.unref();
    return answer;
  }

  #ended(reason: Error): void {
    this.#end ??= reason;
    for (const { reject } of this.#due.splice(0)) reject(this.#end);
  }
}
