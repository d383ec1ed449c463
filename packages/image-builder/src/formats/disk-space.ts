import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { unlessMissing } from '../system-error.ts';

/** Bytes of a block in the result of stat(2), on every file system. */
const STAT_BLOCK = 512;

/** A file that is being written, with its expected size. */
interface Claim {
  readonly path: string;
  readonly bytes: number;
}

/** Free space of one file system, reserved by concurrent writers. */
export class DiskSpace {
  readonly #claims = new Set<Claim>();
  /** Claims are granted in order: of two that do not fit together, the first one is granted. */
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * Reserves space for a file. Returns the number of missing bytes, or a function that releases the reservation once
   * the file is written or given up.
   */
  async claim(path: string, bytes: number): Promise<{ readonly missing: number } | (() => void)> {
    const turn = this.#turn.then(() => this.#grant({ path, bytes }));
    this.#turn = turn.catch(() => {}); // the failure is the caller's
    return await turn;
  }

  async #grant(claim: Claim): Promise<{ readonly missing: number } | (() => void)> {
    // In this order, bytes written between the two calls count twice rather than not at all.
    const due = await Promise.all([...this.#claims].map(stillDue));
    const { bavail, bsize } = await statfs(dirname(claim.path));
    const missing = due.reduce((sum, part) => sum + part, claim.bytes) - bavail * bsize;
    if (missing > 0) return { missing };
    this.#claims.add(claim);
    return () => this.#claims.delete(claim);
  }
}

/** Bytes of a claim that have not been written yet. */
async function stillDue({ path, bytes }: Claim): Promise<number> {
  const written = await unlessMissing(stat(path));
  return Math.max(0, bytes - (written?.blocks ?? 0) * STAT_BLOCK);
}
