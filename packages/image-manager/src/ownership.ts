import { randomBytes } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/** Pattern of an owner: eight characters of {@link ALPHABET}, generated with a new store. */
export const OWNER: RegExp = /^[a-z2-7]{8}$/;

const DIGITS = 10;

/** Generates a random owner for a new store. */
export function generateOwner(): string {
  return Array.from(randomBytes(8), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/**
 * Makes an image-id such as `debian-0000000042-k7f3q2xa`. It names the owner, because a job server shows only the id.
 */
export function imageIdOf(diskimage: string, number: number, owner: string): string {
  return `${diskimage}-${uploadIdOf(number, owner)}`;
}

/**
 * Makes an upload id such as `0000000042-k7f3q2xa`. It is the job's unique key, and the mark that a provider stores.
 */
export function uploadIdOf(number: number, owner: string): string {
  return `${String(number).padStart(DIGITS, '0')}-${owner}`;
}

/** Returns whether an image-id or upload id has this owner. */
export function isOwn(id: string, owner: string): boolean {
  const mark = new RegExp(`(?:^|.-)\\d{${DIGITS},}-${owner}$`);
  return mark.test(id);
}

/** Returns the end of an image-id, which fits in a unique key for any name of the disk image. */
export function buildKeyOf(imageId: string): string {
  return imageId.split('-').slice(-2).join('-');
}
