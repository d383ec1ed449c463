import type { HttpStream } from './http-source.ts';
import { Retries, TransientError, UnusableRangesError } from './retries.ts';
import { getRange, type Range, type RangedObject } from './stored-object.ts';
import { runTaskGroup } from './task-group.ts';
import type { Transfer } from './transfer.ts';
import { checkFreeSpace } from './unpack-object.ts';

/** Number of ranges fetched concurrently. */
const CONNECTIONS = 4;

/** Minimum number of bytes between two failures. With fewer, they count as consecutive failures. */
const PROGRESS = 128 * 1024;

/** Bytes of a response between two checks of the free space, because an object of unknown size may be endless. */
const SPACE_CHECK = 8 * 2 ** 20;

/**
 * Fetches the data that the spool lacks, in several concurrent ranges if the server supports ranges.
 *
 * @throws TransientError if the download has to start over
 * @throws ImageError `artifact-expired`, `artifact-refused`, `download-failed`, `disk-full`
 */
export async function fetchObject(transfer: Transfer, signal: AbortSignal): Promise<void> {
  const { object, spool, options } = transfer;
  if ('stream' in object) {
    const whole = { position: 0, end: Number.POSITIVE_INFINITY };
    try {
      await receive(object.stream, whole, transfer, signal);
    } catch (error) {
      const isComparable = transfer.request.sha256 !== undefined && whole.position > 0;
      if (!(error instanceof TransientError) || !isComparable) throw error;
      transfer.interruption = error;
    }
    await spool.finish(whole.position);
    return;
  }
  // The connections share the generator, and each takes the next part.
  const missing = spool.missing();
  const connection = async (both: AbortSignal): Promise<void> => {
    const retries = new Retries(options.retryPolicy, options.logger);
    for (const part of missing) {
      while (part.position < part.end) await fetchRange(object, part, transfer, retries, both);
    }
  };
  await runTaskGroup(
    signal,
    Array.from({ length: options.connections ?? CONNECTIONS }, () => connection),
  );
  await spool.finish(object.size);
}

/** Fetches the rest of a part, until the connection is lost. */
async function fetchRange(
  object: RangedObject,
  part: Range,
  transfer: Transfer,
  retries: Retries,
  signal: AbortSignal,
): Promise<void> {
  const { source, spool } = transfer;
  try {
    const stream = await getRange(source, object, part, signal);
    await receive(stream, part, transfer, signal);
    if (part.position < part.end) {
      throw new TransientError(`${source.name}: the server sent less than it announced`);
    }
  } catch (error) {
    if (!(error instanceof TransientError) || error instanceof UnusableRangesError) throw error;
    await retries.pause(error, Math.floor(spool.present / PROGRESS), signal);
  }
}

async function receive(
  stream: HttpStream,
  range: Range,
  { source, spool, request }: Transfer,
  signal: AbortSignal,
): Promise<void> {
  let unchecked = 0;
  for await (const chunk of source.body(stream, signal)) {
    if (range.position + chunk.length > range.end) {
      throw new UnusableRangesError(`${source.name}: the server sent more than it announced`);
    }
    await spool.write(chunk, range.position);
    range.position += chunk.length;
    unchecked += chunk.length;
    if (unchecked < SPACE_CHECK) continue;
    await checkFreeSpace(spool.path, request.leaveFree);
    unchecked = 0;
  }
}
