import type { Digester, DigestName } from './digests.ts';
import { HashThreads } from './hash-threads.ts';
import { InlineDigester } from './inline-digester.ts';

/** Size in bytes above which threads are used: starting them takes as long as digesting a smaller file. */
const WORTH_THREADS = 16 * 2 ** 20;

/** Creates the digester of a file of `size` bytes. */
export function createDigester(
  names: readonly DigestName[],
  size: number,
  threads: HashThreads = new HashThreads(),
): Digester {
  const distinct = [...new Set(names)];
  if (distinct.length === 0 || size < WORTH_THREADS) return new InlineDigester(distinct);
  return threads.digester(distinct);
}
