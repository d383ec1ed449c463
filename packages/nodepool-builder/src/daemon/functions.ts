/** What a function name begins with; the rest, after the first colon, is the subject. */
export const VERBS = ['image-build', 'image-upload', 'image-delete'] as const;

/** `image-build` of a disk image, `image-upload` and `image-delete` of an image id. */
export type Verb = (typeof VERBS)[number];

/** `image-build:debian`. */
export function functionName(verb: Verb, subject: string): string {
  return `${verb}:${subject}`;
}

/** The subject of a function name: the disk image, or the image id. */
export function subjectOf(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

/** What the offer depends on. */
export interface Offerable {
  /** Names of the disk images that can be built here. */
  readonly diskimages: Iterable<string>;
  /** Ids of the images that lie here. */
  readonly images: Iterable<string>;
  /** Ids whose delete job may come again, see `ImageRepository.pendingDeletes`. */
  readonly pendingDeletes: Iterable<string>;
  /** Functions of images that are no longer here, with jobs that wait for an answer. */
  readonly waiting: ReadonlyMap<string, Verb>;
}

/** Everything that is registered with Gearman, by function name; there is no other registration code. */
export function offeredFunctions({
  diskimages,
  images,
  pendingDeletes,
  waiting,
}: Offerable): ReadonlyMap<string, Verb> {
  const offer = new Map<string, Verb>(waiting);
  const add = (verb: Verb, subject: string): unknown => offer.set(functionName(verb, subject), verb);
  for (const name of diskimages) add('image-build', name);
  for (const id of images) {
    add('image-upload', id);
    add('image-delete', id);
  }
  for (const id of pendingDeletes) add('image-delete', id);
  return offer;
}
