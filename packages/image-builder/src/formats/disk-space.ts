import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { unlessMissing } from '../system-error.ts';

/** Bytes of a block in `stat`, whatever the file system's own are (stat(2)). */
const STAT_BLOCK = 512;

/** A file that is being written, and how many bytes it will take. */
interface Claim {
  readonly path: string;
  readonly bytes: number;
}

/** The room on one file system, counted together by all who are about to fill it. */
export class DiskSpace {
  readonly #claims = new Set<Claim>();
  /** Claims are granted one after the other: of two that do not fit together, the first one is. */
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * Claims room for a file that is about to be written. Returns how many bytes are missing, or else how to give the
   * claim up when the file is written, or not wanted any more.
   */
  async claim(path: string, bytes: number): Promise<{ readonly missing: number } | (() => void)> {
    const turn = this.#turn.then(() => this.#grant({ path, bytes }));
    this.#turn = turn.catch(() => {}); // the failure is the caller's
    return await turn;
  }

  async #grant(claim: Claim): Promise<{ readonly missing: number } | (() => void)> {
    // In this order: what is written between the two looks counts twice, and not for nothing.
    const due = await Promise.all([...this.#claims].map(stillDue));
    const { bavail, bsize } = await statfs(dirname(claim.path));
    const missing = due.reduce((sum, part) => sum + part, claim.bytes) - bavail * bsize;
    if (missing > 0) return { missing };
    this.#claims.add(claim);
    return () => this.#claims.delete(claim);
  }
}

/** What of a claim is not on the disk yet. */
async function stillDue({ path, bytes }: Claim): Promise<number> {
  const written = await unlessMissing(stat(path));
  return Math.max(0, bytes - (written?.blocks ?? 0) * STAT_BLOCK);
}
