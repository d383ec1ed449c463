/** Program of a hash thread. Each {@link HashOrder} is one hash, which ends when its port closes. */
import { createHash } from 'node:crypto';
import { type MessagePort, parentPort } from 'node:worker_threads';

/** A hash of the bytes in a memory. */
export interface HashOrder {
  readonly name: string;
  readonly memory: SharedArrayBuffer;
  /**
   * Receives a {@link Range} of the next bytes, or `undefined` to request the digest. Each message gets a reply, in
   * order.
   */
  readonly port: MessagePort;
}

/** A part of a memory; `end` is exclusive. */
export interface Range {
  readonly begin: number;
  readonly end: number;
}

/* oxlint-disable unicorn/require-post-message-target-origin -- a thread has no origin */
parentPort?.on('message', ({ name, memory, port }: HashOrder) => {
  const hash = createHash(name);
  port.on('message', (range: Range | undefined) => {
    if (range !== undefined) hash.update(new Uint8Array(memory, range.begin, range.end - range.begin));
    port.postMessage(range === undefined ? hash.digest('hex') : '');
  });
});
