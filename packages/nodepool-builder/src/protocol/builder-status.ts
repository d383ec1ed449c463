import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { ImageRepository, SettingsOf } from '@nodepool-builder/image-builder';
import { objectOf } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { TEXT } from '../terms/record-schema.ts';
import { packageVersion } from '../terms/version.ts';
import { RUNNING_JOB, type RunningJob } from './running-job.ts';

/** Prefix of the {@link statusFunction} of all builders. Access lists allow builders to register `image-`. */
export const STATUS_PREFIX = 'image-builder-status:';

/** Function that one builder offers. Its jobs have an empty argument. */
export function statusFunction(builderId: string): string {
  return `${STATUS_PREFIX}${builderId}`;
}

/** Schema of a {@link BuilderStatus}. */
export const BUILDER_STATUS = objectOf({
  host: TEXT,
  pid: { type: 'integer' },
  version: TEXT, // nodepool-builder's version
  started: TEXT, // start of the process, in ISO 8601
  'images-dir': TEXT,
  'disk-free': { type: 'integer' }, // free bytes for images in images-dir
  'disk-size': { type: 'integer' }, // size of that file system in bytes
  images: { type: 'integer' }, // number of images in images-dir
  diskimages: { type: 'array', items: TEXT }, // names of the disk images that it offers to build
  jobs: { type: 'array', items: RUNNING_JOB },
});

/** State of a builder, the result of a {@link statusFunction} job. */
export type BuilderStatus = SettingsOf<typeof BUILDER_STATUS>;

const READER = new JsonReader(BUILDER_STATUS);

/** Formats the status of this process. */
export async function encodeBuilderStatus(
  { directory, images }: Pick<ImageRepository, 'directory' | 'images'>,
  running: { readonly all: readonly RunningJob[] },
  diskimages: readonly string[],
): Promise<string> {
  const { bavail, blocks, bsize } = await statfs(directory);
  const status: BuilderStatus = {
    host: hostname(),
    pid: process.pid,
    version: packageVersion(),
    started: new Date(Math.round(performance.timeOrigin)).toISOString(),
    'images-dir': directory,
    'disk-free': bavail * bsize,
    'disk-size': blocks * bsize,
    images: images.size,
    diskimages: [...diskimages],
    jobs: [...running.all],
  };
  return JSON.stringify(status);
}

/** @throws Error if the result is not valid */
export function decodeBuilderStatus(result: Buffer): BuilderStatus {
  return READER.parse(result.toString());
}
