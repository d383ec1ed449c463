import type { Logger } from '@nodepool-builder/image-builder';
import { type RetryLimits, runTaskGroup } from '@nodepool-builder/image-builder/module-kit';
import { BLOCK_SIZE, type Run } from './blocks.ts';
import type { DiskSpaceGuard } from './disk-space-guard.ts';
import { type Answer, bodyOf, type HttpSource } from './http-source.ts';
import type { ObjectIdentity } from './journal.ts';
import { ObjectReplaced, Retries, TransientFailure } from './retries.ts';
import type { Spool } from './spool.ts';
import { getRange } from './stored-object.ts';

/** Blocks per request. Short runs cost round trips; long runs leave connections idle at the end. */
const SHORTEST_RUN = 2;
const LONGEST_RUN = 64;

/**
 * Part of an object that a crash may lose: the data in the buffers of the connections, which may be all that was
 * requested.
 */
const LOSS = 1 / 128;

/** Inputs of a transfer. */
export interface Fetching {
  readonly source: HttpSource;
  readonly spool: Spool;
  readonly space: DiskSpaceGuard;
  readonly signal: AbortSignal;
  /** Called with the number of bytes received. */
  readonly onBytes: (bytes: number) => void;
}

/** Settings of {@link fetchRanges}. */
export interface RangeFetching extends Fetching {
  readonly object: ObjectIdentity;
  /** Number of ranges fetched concurrently. */
  readonly connections: number;
  readonly retryPolicy: RetryLimits;
  readonly logger: Logger | undefined;
}

/**
 * Fetches the blocks that the spool lacks, several ranges at a time.
 *
 * @throws ObjectReplaced
 * @throws ImageError `artifact-expired`, `artifact-refused`, `download-failed`, `disk-full`
 * @throws the signal's reason
 */
export async function fetchRanges({ connections, ...fetching }: RangeFetching): Promise<void> {
  const { spool, object, retryPolicy, logger, signal } = fetching;
  const share = Math.floor((object.size * LOSS) / connections / BLOCK_SIZE);
  const most = Math.min(LONGEST_RUN, Math.max(SHORTEST_RUN, share));
  const fetchSome = async (whileAllGoWell: AbortSignal): Promise<void> => {
    const retries = new Retries(retryPolicy, logger);
    while (await fetchRange({ ...fetching, signal: whileAllGoWell }, retries, most));
  };
  await runTaskGroup(
    signal,
    Array.from({ length: connections }, () => fetchSome),
  );
  await spool.truncate();
}

/** Fetches one range, or a part of it; false if none is left. */
async function fetchRange(
  fetching: Omit<RangeFetching, 'connections'>,
  retries: Retries,
  most: number,
): Promise<boolean> {
  const { source, object, spool, signal } = fetching;
  const run = spool.claim(most);
  if (run === undefined) return false;
  try {
    const answer = await getRange(source, object, run, signal);
    await receive(answer, run, fetching);
  } catch (error) {
    spool.release(run);
    if (!(error instanceof TransientFailure) || error instanceof ObjectReplaced) throw error;
    await retries.pause(error, spool.present, signal);
  }
  return true;
}

/**
 * Fetches a whole object into the spool.
 *
 * @throws TransientFailure when it breaks off
 * @throws ImageError `disk-full`
 * @throws the signal's reason
 */
export async function fetchWhole(answer: Answer, fetching: Fetching): Promise<void> {
  const all = { begin: 0, end: Number.POSITIVE_INFINITY };
  fetching.spool.end(await receive(answer, all, fetching));
  await fetching.spool.truncate();
}

/** Stores a body block by block; returns the position of its end. */
async function receive(
  answer: Answer,
  { begin, end }: Run,
  { spool, space, signal, onBytes }: Fetching,
): Promise<number> {
  const block = Buffer.allocUnsafe(BLOCK_SIZE);
  let position = begin;
  let filled = 0;
  const store = async (): Promise<void> => {
    await space.take(filled);
    await spool.write(block.subarray(0, filled), position);
    position += filled;
    filled = 0;
  };
  for await (const chunk of bodyOf(answer, signal)) {
    onBytes(chunk.length);
    if (position + filled + chunk.length > end)
      throw new TransientFailure('the server sent more than it said');
    for (let taken = 0; taken < chunk.length; ) {
      const copied = chunk.copy(block, filled, taken);
      taken += copied;
      filled += copied;
      if (filled === BLOCK_SIZE) await store();
    }
  }
  if (Number.isFinite(end) && position + filled < end)
    throw new TransientFailure('the server sent less than it said');
  if (filled > 0) await store();
  return position;
}
