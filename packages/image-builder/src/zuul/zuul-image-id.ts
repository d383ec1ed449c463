/** The build that an image-id names. */
export interface NamedBuild {
  /** Of `zuul-images`. */
  readonly image: string;
  readonly uuid: string;
  /** When it ended, in milliseconds since the epoch. */
  readonly endTime: number;
}

/**
 * The image-id of what is taken from a build: `debian-1763773261-0123456789abcdef0123456789abcdef`. Whoever finds the
 * build makes the same id, so that a fleet takes it once.
 */
export function zuulImageId({ image, uuid, endTime }: NamedBuild): string {
  return `${image}-${Math.floor(endTime / 1000)}-${uuid}`;
}

/** The build that an image-id names; undefined if it has another form. A uuid is 32 hexadecimal digits. */
export function parseZuulImageId(imageId: string): NamedBuild | undefined {
  const match = /^(?<image>.+)-(?<seconds>\d{1,12})-(?<uuid>[\da-f]{32})$/s.exec(imageId);
  if (match?.groups === undefined) return undefined;
  const { image = '', seconds, uuid = '' } = match.groups;
  return { image, uuid, endTime: Number(seconds) * 1000 };
}
