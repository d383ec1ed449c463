import type { Digester, DigestName } from './digests.ts';
import { HashThreads } from './hash-threads.ts';
import { InlineDigester } from './inline-digester.ts';

/** Bytes for which threads are worth their start: digesting fewer here takes no longer than that. */
const WORTH_THREADS = 16 * 2 ** 20;

/** The digester for a file of `size` bytes. */
export function createDigester(
  names: readonly DigestName[],
  size: number,
  threads: HashThreads = new HashThreads(),
): Digester {
  const distinct = [...new Set(names)];
  if (distinct.length === 0 || size < WORTH_THREADS) return new InlineDigester(distinct);
  return threads.digester(distinct);
}
