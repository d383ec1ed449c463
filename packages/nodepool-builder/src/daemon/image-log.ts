import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { WorkFailError } from '@nodepool-builder/gearman-node';
import {
  checkImageId,
  errnoOf,
  imageIdError,
  LOG_BEGIN,
  UNTRICKED,
  unlessMissing,
  uploadLogName,
  visible,
} from '@nodepool-builder/image-builder/internal';
import { subjectOf } from '../protocol/functions.ts';
import { decodeLogRequest, encodeLogPart } from '../protocol/log-part.ts';

/** Maximum size of a part in bytes. */
const PART = 262_144;

/** Bytes that are read again after the log was truncated. */
const REPEATED = 65_536;

/** Pause between two checks of a log that grows, in milliseconds. */
const PAUSE = 200;

/** Suffix of the file names of upload logs. The file names of all logs end in `.log`. */
const UPLOAD = /\.[\da-f]{16}\.upload$/;

/** Ids of the images with a log in `build-log-dir`, which may also contain files of other programs. */
export async function loggedImages(directory: string): Promise<readonly string[]> {
  const names = (await unlessMissing(readdir(directory))) ?? [];
  const ids = new Map(
    names
      .filter((name) => name.endsWith('.log'))
      .map((name) => [name, name.slice(0, -'.log'.length).replace(UPLOAD, '')] as const)
      .filter(([, id]) => imageIdError(id) === undefined),
  );
  const ours = await Promise.all(
    Array.from(ids, async ([name, id]) => ((await isLog(join(directory, name))) ? [id] : [])),
  );
  return [...new Set(ours.flat())];
}

async function isLog(path: string): Promise<boolean> {
  try {
    return (await readPart(path, 0, LOG_BEGIN.length)).size > 0;
  } catch {
    return false; // another program's file, or already removed
  }
}

/**
 * Reads a part of a log. If nothing follows the offset, it waits for more while the build runs.
 *
 * @param directory `build-log-dir`
 * @param functionName `image-log:<image-id>`
 * @param argument see {@link decodeLogRequest}
 * @param isRunning returns whether this builder runs the build or the upload
 * @returns see {@link encodeLogPart}
 * @throws Error if the log does not exist, or the argument is not valid
 */
export async function readLogPart(
  directory: string,
  functionName: string,
  argument: string,
  isRunning: (imageId: string, uploadId: string | undefined) => boolean,
  signal: AbortSignal,
): Promise<string> {
  const imageId = subjectOf(functionName);
  checkImageId(imageId);
  const { offset, wait = 0, 'upload-id': uploadId } = decodeLogRequest(argument);
  const path = join(directory, `${uploadId === undefined ? imageId : uploadLogName(imageId, uploadId)}.log`);
  const end = performance.now() + wait * 1000;
  for (;;) {
    const runs = isRunning(imageId, uploadId); // checked before the read, which then includes the last lines of a build
    const { data, size, start } = await readPart(path, offset, PART).catch((error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') throw error;
      if (!runs) throw noLog(imageId, uploadId, error);
      return { data: Buffer.alloc(0), size: 0, start: offset }; // the build or upload has just started
    });
    const isComplete = !runs && start + data.length >= size;
    if (data.length > 0 || isComplete || performance.now() >= end) {
      return encodeLogPart({ offset: start, data, isComplete });
    }
    await delay(PAUSE, undefined, { signal });
  }
}

function noLog(imageId: string, uploadId: string | undefined, cause: unknown): WorkFailError {
  const what = uploadId === undefined ? 'the build' : `upload ${visible(uploadId.slice(0, 200))}`;
  const remedy = 'build-log-retention limits how many logs are kept';
  return new WorkFailError(`this builder has no log of ${what} of image ${imageId}; ${remedy}`, { cause });
}

/**
 * Reads a log of this program. If it was truncated since, because it reached its limit, the read starts shortly before
 * its end.
 */
async function readPart(
  path: string,
  offset: number,
  most: number,
): Promise<{ readonly data: Buffer; readonly size: number; readonly start: number }> {
  const file = await open(path, constants.O_RDONLY | UNTRICKED);
  try {
    const { size } = await file.stat();
    const begin = (await file.read(Buffer.alloc(LOG_BEGIN.length), 0, LOG_BEGIN.length, 0)).buffer.toString();
    if (size > 0 && begin !== LOG_BEGIN) throw new Error(`"${path}" is not the log of a build`);
    const start = offset <= size ? offset : Math.max(0, size - REPEATED);
    const buffer = Buffer.alloc(Math.min(most, size - start));
    const { bytesRead } = await file.read({ buffer, position: start });
    return { data: buffer.subarray(0, bytesRead), size, start };
  } finally {
    await file.close();
  }
}
