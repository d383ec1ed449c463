/** `image-build` of a disk image, `image-upload` and `image-delete` of an image id. */
export type Verb = 'image-build' | 'image-upload' | 'image-delete';

/** `image-build:debian`. */
export function functionName(verb: Verb, subject: string): string {
  return `${verb}:${subject}`;
}

/** The part of a function name before the first colon. */
export function verbOf(name: string): Verb {
  return name.slice(0, name.indexOf(':')) as Verb;
}

/** The subject of a function name: the disk image, or the image id. */
export function subjectOf(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

/** State that decides which functions are offered. */
export interface Offerable {
  /** Names of the disk images that can be built here. */
  readonly diskimages: Iterable<string>;
  /** Ids of the images on this host. */
  readonly images: Iterable<string>;
  /** Ids whose delete job may come again, see `ImageRepository.pendingDeletes`. */
  readonly pendingDeletes: Iterable<string>;
  /** Functions of images that are no longer here, with jobs that wait for an answer. */
  readonly waiting: Iterable<string>;
}

/** Names of all functions to register with Gearman; there is no other registration code. */
export function offeredFunctions({
  diskimages,
  images,
  pendingDeletes,
  waiting,
}: Offerable): ReadonlySet<string> {
  const offer = new Set(waiting);
  for (const name of diskimages) offer.add(functionName('image-build', name));
  for (const id of images) offer.add(functionName('image-upload', id)).add(functionName('image-delete', id));
  for (const id of pendingDeletes) offer.add(functionName('image-delete', id));
  return offer;
}
