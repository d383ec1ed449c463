/** Program of a hash thread: executes and answers each {@link HashOrder} in turn. */
import { createHash, type Hash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import type { DigestName, Range } from './digests.ts';

/** A step of a hash, which is identified by a number. `digest` and `drop` end the hash. */
export type HashOrder = { readonly hash: number } & (
  | { readonly do: 'begin'; readonly name: DigestName; readonly memory: SharedArrayBuffer }
  | ({ readonly do: 'update' } & Range)
  | { readonly do: 'digest' }
  | { readonly do: 'drop' }
);

const hashes = new Map<number, { readonly hash: Hash; readonly memory: SharedArrayBuffer }>();

parentPort?.on('message', (order: HashOrder) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(carryOut(order));
});

/** @returns the digest, if the order asks for it */
function carryOut(order: HashOrder): string | undefined {
  if (order.do === 'begin') {
    hashes.set(order.hash, { hash: createHash(order.name), memory: order.memory });
    return undefined;
  }
  const { hash, memory } = hashes.get(order.hash) ?? {};
  if (order.do === 'update') {
    if (memory !== undefined) hash?.update(new Uint8Array(memory, order.begin, order.end - order.begin));
    return undefined;
  }
  hashes.delete(order.hash);
  return order.do === 'digest' ? hash?.digest('hex') : undefined;
}
