import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  checkImageId,
  errnoOf,
  JsonReader,
  type SettingsSchema,
} from '@nodepool-builder/image-builder/module-kit';

/** Schema of the argument of `image-log:<image-id>`. */
export const LOG_REQUEST = {
  type: 'object',
  required: ['offset'],
  properties: {
    offset: { type: 'integer', minimum: 0 }, // of the first byte
    wait: { type: 'number', minimum: 0, maximum: 60 }, // seconds, if nothing follows the offset; default 0
    'upload-id': { type: 'string' }, // for the log of an upload
  },
} as const satisfies SettingsSchema;

/** Schema of its result. */
export const LOG_PART = {
  type: 'object',
  required: ['offset', 'data', 'complete'],
  properties: {
    offset: { type: 'integer' }, // of the first byte
    data: { type: 'string' }, // in base64
    complete: { type: 'boolean' }, // nothing follows
  },
} as const satisfies SettingsSchema;

/** Bytes of a part. */
const PART = 262_144;

/** Pause between two looks at a log that grows, in milliseconds. */
const PAUSE = 200;

const FUNCTION = 'image-log:';

/** Function that each builder offers for the logs of builds that it has. */
export function logFunction(imageId: string): string {
  return `${FUNCTION}${imageId}`;
}

/** Path of the log of a build. */
function logPath(directory: string, imageId: string): string {
  return join(directory, '.nodepool-builder/logs', `${imageId}.log`);
}

/**
 * Ids of the builds whose log is on this host.
 *
 * @param directory images-dir
 */
export async function loggedImages(directory: string): Promise<readonly string[]> {
  const names = await readdir(join(directory, '.nodepool-builder/logs')).catch((error: unknown): string[] => {
    if (errnoOf(error) === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => name.endsWith('.log')).map((name) => name.slice(0, -'.log'.length));
}

const REQUEST = new JsonReader(LOG_REQUEST);

/**
 * Reads a part of a log. If nothing follows the offset, waits for it, as long as the build runs.
 *
 * @param directory images-dir
 * @param functionName `image-log:<image-id>`
 * @param argument see {@link LOG_REQUEST}
 * @param isRunning whether the build runs here
 * @returns JSON of {@link LOG_PART}
 * @throws Error if the log is not there, or the argument is not valid
 */
export async function readLogPart(
  directory: string,
  functionName: string,
  argument: string,
  isRunning: (imageId: string) => boolean,
  signal: AbortSignal,
): Promise<string> {
  const imageId = functionName.slice(FUNCTION.length);
  checkImageId(imageId);
  const { offset, wait = 0, 'upload-id': uploadId } = REQUEST.parse(argument);
  if (uploadId !== undefined) throw new Error(`upload ${uploadId} has no log`);
  const end = performance.now() + wait * 1000;
  for (;;) {
    const runs = isRunning(imageId); // before the look: what a build writes last is then in it
    const { data, size } = await readPart(logPath(directory, imageId), offset).catch((error: unknown) => {
      if (!runs || errnoOf(error) !== 'ENOENT') throw error;
      return { data: Buffer.alloc(0), size: 0 }; // it has just begun
    });
    const complete = !runs && offset + data.length >= size;
    if (data.length > 0 || complete || performance.now() >= end) {
      return JSON.stringify({ offset, data: data.toString('base64'), complete });
    }
    await delay(PAUSE, undefined, { signal });
  }
}

async function readPart(path: string, offset: number): Promise<{ data: Buffer; size: number }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.max(0, Math.min(PART, size - offset)));
    const { bytesRead } = await file.read({ buffer, position: offset });
    return { data: buffer.subarray(0, bytesRead), size };
  } finally {
    await file.close();
  }
}
