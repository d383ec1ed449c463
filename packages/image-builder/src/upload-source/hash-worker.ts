/** What a hash thread runs: carries out each order in turn and answers it, see {@link HashOrder}. */
import { createHash, type Hash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import type { DigestName, Range } from './digests.ts';

/** One thing to do for a hash, which has a number. Nothing is left of it after `digest` or `drop`. */
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

/** @returns the digest, of an order for one */
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
