import type { SettingsOf } from '@nodepool-builder/image-builder';
import { objectOf } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

/** Function that each builder offers for each image whose build or upload log it has. */
export function logFunction(imageId: string): string {
  return `image-log:${imageId}`;
}

const REQUEST = objectOf(
  { offset: { type: 'integer', minimum: 0 } }, // offset of the first byte
  {
    wait: { type: 'number', minimum: 0, maximum: 60 }, // seconds to wait if nothing follows the offset; default 0
    'upload-id': { type: 'string' }, // for the log of an upload
  },
);

/** Argument of a {@link logFunction} job. */
export type LogRequest = SettingsOf<typeof REQUEST>;

const REQUEST_READER = new JsonReader(REQUEST);

export function encodeLogRequest(request: LogRequest): string {
  return JSON.stringify(request);
}

/** @throws Error if the argument is not valid */
export function decodeLogRequest(argument: string): LogRequest {
  return REQUEST_READER.parse(argument);
}

const PART_READER = new JsonReader(
  objectOf({
    offset: { type: 'integer' }, // offset of the first byte
    data: { type: 'string' }, // in base64
    complete: { type: 'boolean' }, // nothing follows
  }),
);

/** Part of a log, the result of a {@link logFunction} job. */
export interface LogChunk {
  readonly data: Buffer;
  /** Offset of the chunk's first byte. */
  readonly offset: number;
  /** True if the chunk is the last one. */
  readonly isComplete: boolean;
}

export function encodeLogPart({ data, offset, isComplete }: LogChunk): string {
  return JSON.stringify({ offset, data: data.toString('base64'), complete: isComplete });
}

/** @throws Error if the result is not valid */
export function decodeLogPart(result: Buffer): LogChunk {
  const { offset, data, complete } = PART_READER.parse(result.toString());
  return { data: Buffer.from(data, 'base64'), offset, isComplete: complete };
}
