/** A build of another system, such as Zuul, that an image-id names. */
export interface ImportedBuild {
  /** Name of the disk image. */
  readonly image: string;
  readonly uuid: string;
  /** When it ended, in milliseconds since the epoch. */
  readonly endTime: number;
}

/**
 * The image-id of an imported build: `debian-1763773261-0123456789abcdef0123456789abcdef`. Every host derives the same
 * id, so that a fleet imports a build once.
 */
export function importedImageId({ image, uuid, endTime }: ImportedBuild): string {
  return `${image}-${Math.floor(endTime / 1000)}-${uuid}`;
}

/** The build that an image-id names; undefined if it has another form. A uuid is 32 hexadecimal digits. */
export function parseImportedImageId(imageId: string): ImportedBuild | undefined {
  const match = /^(?<image>.+)-(?<seconds>\d{1,12})-(?<uuid>[\da-f]{32})$/s.exec(imageId);
  if (match?.groups === undefined) return undefined;
  const { image = '', seconds, uuid = '' } = match.groups;
  return { image, uuid, endTime: Number(seconds) * 1000 };
}
