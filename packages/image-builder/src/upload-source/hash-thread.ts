import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { HashOrder } from './hash-worker.ts';

/** Program of the thread, with the extension of this file: `.ts` in the sources, `.js` when compiled. */
const PROGRAM = new URL(`./hash-worker${extname(import.meta.url)}`, import.meta.url);

interface Answer {
  readonly resolve: (value: string | undefined) => void;
  readonly reject: (reason: unknown) => void;
}

/** A thread that computes digests. It keeps the process alive only while an answer is due. */
export class HashThread {
  /** Sum of the costs of its hashes. */
  load = 0;
  /** Without the flags of this process: with `--input-type`, for example, the program would not start. */
  readonly #worker = new Worker(PROGRAM, { name: 'hash', execArgv: [] });
  readonly #due: Answer[] = [];
  #end: Error | undefined;

  constructor() {
    this.#worker.on('message', (value: string | undefined) => this.#answered()?.resolve(value));
    this.#worker.on('error', (error: Error) => this.#ended(error));
    this.#worker.on('exit', () => this.#ended(new Error('a thread that computes digests has ended')));
  }

  /** Whether the thread has ended. */
  get dead(): boolean {
    return this.#end !== undefined;
  }

  /**
   * Executes an order, after the previous ones.
   *
   * @returns the digest, if the order asks for it
   * @throws Error with which the thread ended
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

  /** Ends the thread. Due answers are rejected. */
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
