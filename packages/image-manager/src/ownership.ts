/** What an owner looks like: eight characters of 32 (five bits each), drawn when a store is made. */
export const OWNER: RegExp = /^[a-z2-7]{8}$/;

const DIGITS = 10;

/** `debian-0000000042-k7f3q2xa`: the image-id says whose the image is, for a job server shows nothing else of it. */
export function imageIdOf(diskimage: string, number: number, owner: string): string {
  return `${diskimage}-${uploadIdOf(number, owner)}`;
}

/** `0000000042-k7f3q2xa`: short enough for a unique key, and what a provider stores as our mark. */
export function uploadIdOf(number: number, owner: string): string {
  return `${String(number).padStart(DIGITS, '0')}-${owner}`;
}

/** Whether an image-id or an upload's id was made by this owner. */
export function isOwn(id: string, owner: string): boolean {
  const mark = new RegExp(`(?:^|.-)\\d{${DIGITS},}-${owner}$`);
  return mark.test(id);
}

/** The part of an image-id that is short enough for a unique key, whatever the disk image is called. */
export function buildKeyOf(imageId: string): string {
  return imageId.split('-').slice(-2).join('-');
}
