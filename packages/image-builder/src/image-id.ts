import { ImageError } from './errors.ts';
import { FORMAT_NAMES, formatRow } from './formats.ts';

/** The longest name that Linux's file systems take, in bytes. */
const NAME_MAX = 255;

/** Room that the longest companion of an image file takes after the id (`.vhd-fixed.sha256`). */
const LONGEST_SUFFIX =
  Math.max(...FORMAT_NAMES.map((format) => formatRow(format).extension.length)) + '.sha256'.length + 1;

/** The longest image id in bytes: every file that belongs to it still fits a file name. */
export const MAX_IMAGE_ID_BYTES: number = NAME_MAX - LONGEST_SUFFIX;

const FAULTS: readonly (readonly [fault: string, test: (id: string) => boolean])[] = [
  ['is empty', (id) => id === ''],
  ['contains a "/"', (id) => id.includes('/')],
  ['contains ".."', (id) => id.includes('..')],
  ['begins with a "."', (id) => id.startsWith('.')],
  ['begins with a "-", as an option does', (id) => id.startsWith('-')],
  ['contains white space or a control character', (id) => /[\s\p{Cc}]/u.test(id)],
  [`is longer than ${MAX_IMAGE_ID_BYTES} bytes`, (id) => Buffer.byteLength(id) > MAX_IMAGE_ID_BYTES],
];

/** Why `id` cannot be an image id, as the end of a sentence; undefined if it can. */
export function imageIdFault(id: string): string | undefined {
  return FAULTS.find(([, test]) => test(id))?.[0];
}

/**
 * Refuses what cannot be an image id: it becomes a part of file names and of Gearman function names.
 *
 * @throws ImageError `invalid-image-id`
 */
export function checkImageId(id: unknown): asserts id is string {
  if (typeof id !== 'string') {
    throw new ImageError(
      'invalid-image-id',
      `image-id must be a string, not ${id === null ? 'null' : typeof id}; send it as "image-id": "<id>"`,
    );
  }
  const fault = imageIdFault(id);
  if (fault !== undefined) {
    throw new ImageError(
      'invalid-image-id',
      `image-id ${JSON.stringify(id.slice(0, 80))} ${fault}; choose a plain file name, such as "debian-0000000001"`,
    );
  }
}
