import { createHash } from 'node:crypto';
import { extname } from 'node:path';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Checksums } from '../types.ts';
import type { HashOrder, Range } from './hash-worker.ts';

const NAMES: readonly (keyof Checksums)[] = ['md5', 'sha256'];

/** Minimum file size in bytes for using threads, which take as long to start as hashing a smaller file. */
const WORTH_THREADS = 16 * 2 ** 20;

/** Size of a slot in bytes. Smaller slots need more messages, larger ones do not fit in the CPU cache. */
const SLOT_SIZE = 512 * 1024;

/** One slot on the wire, one being filled, and four for threads that lag behind. */
const SLOTS = 6;

/** A part of the memory of a {@link Digester}. */
export interface HashBuffer {
  readonly begin: number;
  readonly bytes: Buffer;
  /** Settled when the slot may be filled again. */
  done: Promise<unknown>;
}

/** A hash that is being computed. */
interface RunningHash {
  readonly name: string;
  update(bytes: Range): Promise<unknown>;
  digest(): Promise<string>;
  close(): void;
}

/** Computes the checksums of one file from the slots that its user fills, one after the other. */
export class Digester {
  readonly #memory: SharedArrayBuffer;
  readonly #slots: readonly HashBuffer[];
  readonly #hashes: readonly RunningHash[];
  #turn = 0;
  #isOpen = true;

  /**
   * @param size of the file in bytes, if it is known
   * @param isNeeded false to compute nothing; default true
   */
  constructor(size: number = Number.POSITIVE_INFINITY, isNeeded = true) {
    const memory = takeMemory();
    this.#memory = memory;
    this.#slots = Array.from({ length: SLOTS }, (_, index) => {
      const begin = index * SLOT_SIZE;
      return { begin, bytes: Buffer.from(memory, begin, SLOT_SIZE), done: Promise.resolve() };
    });
    const names = isNeeded ? NAMES : [];
    this.#hashes = names.map((name) =>
      size < WORTH_THREADS ? inlineHash(name, memory) : new ThreadHash(name, memory),
    );
  }

  /** Waits until the next slot may be filled. Slots take turns. */
  async slot(): Promise<HashBuffer> {
    const slot = this.#slots[this.#turn % SLOTS] as HashBuffer;
    this.#turn += 1;
    await slot.done;
    return slot;
  }

  /** Adds the first bytes of a slot to the hashes. Never rejects: {@link digest} reports the error. */
  update(slot: HashBuffer, length: number): Promise<unknown> {
    const range = { begin: slot.begin, end: slot.begin + length };
    slot.done = Promise.allSettled(this.#hashes.map((hash) => hash.update(range)));
    return slot.done;
  }

  /** Returns the checksums. Rejects if a thread has died. */
  async digest(): Promise<Checksums> {
    const digests = this.#hashes.map(async (hash) => [hash.name, await hash.digest()]);
    return Object.fromEntries(await Promise.all(digests)) as Checksums;
  }

  /** Releases the memory and the threads. */
  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const hash of this.#hashes) hash.close();
    await giveMemory(this.#memory);
  }
}

function inlineHash(name: string, memory: SharedArrayBuffer): RunningHash {
  const hash = createHash(name);
  return {
    name,
    update: async ({ begin, end }) => hash.update(new Uint8Array(memory, begin, end - begin)),
    digest: async () => hash.digest('hex'),
    close: () => {},
  };
}

/** A hash in a thread. It keeps the process alive only while it waits for a reply. */
class ThreadHash implements RunningHash {
  readonly name: string;
  readonly #port: MessagePort;
  readonly #due: PromiseWithResolvers<string>[] = [];
  #hasEnded = false;

  constructor(name: string, memory: SharedArrayBuffer) {
    this.name = name;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (digest: string) => this.#next()?.resolve(digest));
    port1.on('close', () => {
      this.#hasEnded = true;
      while (this.#due.length > 0) this.#next()?.reject(this.#ended());
    });
    port1.unref();
    const order: HashOrder = { name, memory, port: port2 };
    threadFor(name).postMessage(order, [port2]);
  }

  digest(): Promise<string> {
    return this.update(undefined);
  }

  close(): void {
    this.#port.close();
  }

  async update(bytes: Range | undefined): Promise<string> {
    if (this.#hasEnded) throw this.#ended();
    const digest = Promise.withResolvers<string>();
    this.#due.push(digest);
    this.#port.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#port.postMessage(bytes);
    return await digest.promise;
  }

  #next(): PromiseWithResolvers<string> | undefined {
    const digest = this.#due.shift();
    if (this.#due.length === 0) this.#port.unref();
    return digest;
  }

  #ended(): Error {
    return new Error(`the thread that computes ${this.name} has ended`);
  }
}

/** Program of a thread, with the extension of this file: `.ts` in the sources, `.js` when compiled. */
const PROGRAM = new URL(`./hash-worker${extname(import.meta.url)}`, import.meta.url);

/** Memories are reused, because the garbage collector ignores the size of shared memory and would let it accumulate. */
const memories: SharedArrayBuffer[] = [];

/** One thread per hash algorithm, shared by all digesters of this process. A thread takes 17 MB of memory. */
const threads = new Map<string, Worker>();

let digesters = 0;

function takeMemory(): SharedArrayBuffer {
  digesters += 1;
  return memories.pop() ?? new SharedArrayBuffer(SLOTS * SLOT_SIZE);
}

/** Returns a memory, and ends the threads after the last digester. */
async function giveMemory(memory: SharedArrayBuffer): Promise<void> {
  memories.push(memory);
  digesters -= 1;
  if (digesters > 0) return;
  const ending = [...threads.values()];
  threads.clear();
  await Promise.all(ending.map((thread) => thread.terminate()));
}

function threadFor(name: string): Worker {
  const running = threads.get(name);
  if (running !== undefined) return running;
  // Excludes the flags of this process: with `--input-type`, for example, the program would not start.
  const thread = new Worker(PROGRAM, { name: 'hash', execArgv: [] });
  const forget = (): void => {
    if (threads.get(name) === thread) threads.delete(name);
  };
  thread.on('error', forget).on('exit', forget).unref();
  threads.set(name, thread);
  return thread;
}
