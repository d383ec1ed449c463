import { NOT_UTF8 } from './directory-entries.ts';
import { ImageError } from './errors.ts';
import { FORMAT_NAMES, formatRow } from './formats.ts';

/** Maximum length of a file name on Linux, in bytes. */
const NAME_MAX = 255;

/** Length of the longest suffix after an image-id (`.vhd-fixed.sha256`). */
const MAX_SUFFIX_LENGTH =
  Math.max(...FORMAT_NAMES.map((format) => formatRow(format).extension.length)) + '.sha256'.length + 1;

/** Maximum length of an image-id in bytes, with which the names of all its files are valid. */
export const MAX_IMAGE_ID_BYTES: number = NAME_MAX - MAX_SUFFIX_LENGTH;

const ERRORS: readonly (readonly [error: string, test: (id: string) => boolean])[] = [
  ['is empty', (id) => id === ''],
  ['contains a "/"', (id) => id.includes('/')],
  ['contains ".."', (id) => id.includes('..')],
  ['begins with a "."', (id) => id.startsWith('.')],
  ['begins with a "-", as an option does', (id) => id.startsWith('-')],
  ['contains white space or a control character', (id) => /[\s\p{Cc}]/u.test(id)],
  ['contains U+FFFD or bytes that are not UTF-8', (id) => id.includes(NOT_UTF8)],
  [`is longer than ${MAX_IMAGE_ID_BYTES} bytes`, (id) => Buffer.byteLength(id) > MAX_IMAGE_ID_BYTES],
];

/** Returns the reason why an image-id is invalid, as the end of a sentence; undefined if it is valid. */
export function imageIdError(id: string): string | undefined {
  return ERRORS.find(([, test]) => test(id))?.[0];
}

/**
 * Rejects an invalid image-id, because it becomes part of file names and of Gearman function names.
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
  const error = imageIdError(id);
  if (error !== undefined) {
    throw new ImageError(
      'invalid-image-id',
      `image-id ${JSON.stringify(id.slice(0, 80))} ${error}; choose a plain file name, such as "debian-0000000001"`,
    );
  }
}

/** A build of another system, whose image-id identifies it. */
export interface ImportedBuild {
  /** Name of the disk image. */
  readonly image: string;
  readonly uuid: string;
  /** Time at which it ended, in milliseconds since 1970. */
  readonly endTime: number;
}

/**
 * Returns the image-id of an imported build: `debian-1763773261-0123456789abcdef0123456789abcdef`. Every host derives
 * the same id, so that a fleet imports a build once.
 */
export function importedImageId({ image, uuid, endTime }: ImportedBuild): string {
  return `${image}-${Math.floor(endTime / 1000)}-${uuid}`;
}

/** Returns the build that an image-id identifies; undefined if it has another form. A uuid is 32 hexadecimal digits. */
export function parseImportedImageId(imageId: string): ImportedBuild | undefined {
  const match = /^(?<image>.+)-(?<seconds>\d{1,12})-(?<uuid>[\da-f]{32})$/s.exec(imageId);
  if (match?.groups === undefined) return undefined;
  const { image = '', seconds, uuid = '' } = match.groups;
  return { image, uuid, endTime: Number(seconds) * 1000 };
}
