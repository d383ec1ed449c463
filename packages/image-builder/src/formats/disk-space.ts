import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Mutex } from '../repository/mutex.ts';
import { unlessMissing } from '../system-error.ts';

/** Bytes of a block in the result of stat(2), on every file system. */
export const STAT_BLOCK = 512;

/** A file that is being written, with its expected size. */
interface Claim {
  readonly path: string;
  readonly bytes: number;
}

/** Free space of one file system, reserved by concurrent writers. */
export class DiskSpace {
  readonly #claims = new Set<Claim>();
  /** Of two claims that do not fit together, the first one is granted. */
  readonly #mutex = new Mutex();

  /**
   * Reserves space for a file while it is written.
   *
   * @param tooLittle gives the error for a number of missing bytes
   */
  async reserve<T>(claim: Claim, write: () => Promise<T>, tooLittle: (missing: number) => Error): Promise<T> {
    await this.#mutex.run(async () => {
      // In this order, bytes written between the two calls count twice rather than not at all.
      const due = await Promise.all([...this.#claims].map(stillDue));
      const { bavail, bsize } = await statfs(dirname(claim.path));
      const missing = due.reduce((sum, part) => sum + part, claim.bytes) - bavail * bsize;
      if (missing > 0) throw tooLittle(missing);
      this.#claims.add(claim);
    });
    try {
      return await write();
    } finally {
      this.#claims.delete(claim);
    }
  }
}

/** Bytes of a claim that have not been written yet. */
async function stillDue({ path, bytes }: Claim): Promise<number> {
  const written = await unlessMissing(stat(path));
  return Math.max(0, bytes - (written?.blocks ?? 0) * STAT_BLOCK);
}
