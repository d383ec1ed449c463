import { createHash } from 'node:crypto';
import type { Digester, DigestName, Digests, Range } from './digests.ts';
import { RING_SIZE } from './slot-ring.ts';

/** Computes digests in this thread. */
export class InlineDigester implements Digester {
  readonly memory: ArrayBuffer = new ArrayBuffer(RING_SIZE);
  readonly #hashes;

  constructor(names: readonly DigestName[]) {
    this.#hashes = names.map((name) => ({ name, hash: createHash(name) }));
  }

  async update({ begin, end }: Range): Promise<void> {
    const bytes = new Uint8Array(this.memory, begin, end - begin);
    for (const { hash } of this.#hashes) hash.update(bytes);
  }

  async digest(): Promise<Digests> {
    return Object.fromEntries(this.#hashes.map(({ name, hash }) => [name, hash.digest('hex')])) as Digests;
  }

  async close(): Promise<void> {}
}
