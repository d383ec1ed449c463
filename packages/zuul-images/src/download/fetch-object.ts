import type { Logger } from '@nodepool-builder/image-builder';
import type { RetryLimits } from '@nodepool-builder/image-builder/module-kit';
import type { Answer, HttpSource } from './http-source.ts';
import { ObjectReplaced, Retries, TransientFailure } from './retries.ts';
import type { Spool } from './spool.ts';
import { getRange, type RangedObject, type WholeObject } from './stored-object.ts';
import { runTaskGroup } from './task-group.ts';
import { checkFreeSpace } from './unpack-object.ts';

/** Bytes that must arrive between two failures, or they count as failures in a row. */
const PROGRESS = 128 * 1024;

/** Bytes of a response between two checks of the free space: an object of unknown size may be endless. */
const SPACE_CHECK = 8 * 2 ** 20;

/** Settings of {@link fetchObject}. */
export interface FetchOptions {
  readonly source: HttpSource;
  readonly object: RangedObject | WholeObject;
  readonly spool: Spool;
  /** Number of ranges fetched concurrently. */
  readonly connections: number;
  /** Bytes that stay free on the file system. */
  readonly leaveFree: number;
  readonly retryPolicy: RetryLimits | undefined;
  readonly logger: Logger | undefined;
}

/** The part of an object that a response sends. */
interface Range {
  /** Position of the next byte. */
  position: number;
  /** Position behind the last byte. */
  readonly end: number;
}

/**
 * Fetches the data that the spool lacks: several ranges at a time if the server supports ranges.
 *
 * @throws TransientFailure if the download has to start over
 * @throws ImageError `artifact-expired`, `artifact-refused`, `download-failed`, `disk-full`
 */
export async function fetchObject(options: FetchOptions, signal: AbortSignal): Promise<void> {
  const { object, spool, connections } = options;
  if ('answer' in object) {
    const whole = { position: 0, end: Number.POSITIVE_INFINITY };
    await receive(object.answer, whole, options, signal);
    await spool.finish(whole.position);
    return;
  }
  // The connections share the generator: each takes the next part.
  const missing = spool.missing();
  const connection = async (both: AbortSignal): Promise<void> => {
    const retries = new Retries(options.retryPolicy, options.logger);
    for (const { begin, end } of missing) {
      const part = { position: begin, end };
      while (part.position < end) await fetchRange(object, part, options, retries, both);
    }
  };
  await runTaskGroup(
    signal,
    Array.from({ length: connections }, () => connection),
  );
  await spool.finish(object.size);
}

/** Fetches the rest of a part, until the connection is lost. */
async function fetchRange(
  object: RangedObject,
  part: Range,
  options: FetchOptions,
  retries: Retries,
  signal: AbortSignal,
): Promise<void> {
  const { source, spool } = options;
  try {
    const answer = await getRange(source, object, { begin: part.position, end: part.end }, signal);
    await receive(answer, part, options, signal);
    if (part.position < part.end) {
      throw new TransientFailure(`${source.name}: the server sent less than it announced`);
    }
  } catch (error) {
    if (!(error instanceof TransientFailure) || error instanceof ObjectReplaced) throw error;
    await retries.pause(error, Math.floor(spool.present / PROGRESS), signal);
  }
}

async function receive(
  answer: Answer,
  range: Range,
  { source, spool, leaveFree }: FetchOptions,
  signal: AbortSignal,
): Promise<void> {
  let unchecked = 0;
  for await (const chunk of source.body(answer, signal)) {
    if (range.position + chunk.length > range.end) {
      throw new TransientFailure(`${source.name}: the server sent more than it announced`);
    }
    await spool.write(chunk, range.position);
    range.position += chunk.length;
    unchecked += chunk.length;
    if (unchecked < SPACE_CHECK) continue;
    await checkFreeSpace(spool.path, leaveFree);
    unchecked = 0;
  }
}
