/**
 * `image-build` of a disk image, `image-upload` and `image-delete` of an image id. If the configuration pauses a disk
 * image, `image-build-paused` replaces `image-build`: only the manager submits it, after `image-unpause`.
 */
export type Verb = 'image-build' | 'image-build-paused' | 'image-upload' | 'image-delete';

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

/** A set of names or ids. */
type Names = Pick<ReadonlySet<string>, 'has'>;

/**
 * Returns whether a function of an image is registered with Gearman. It is the only rule, and is evaluated for one
 * function at a time, because with 100,000 images, computing the set of all functions takes too long at each change.
 *
 * @param waiting functions of removed images for which jobs still wait
 */
export function isOffered(
  name: string,
  { images, pendingDeletes }: { readonly images: Names; readonly pendingDeletes: Names },
  waiting: Names,
): boolean {
  const imageId = subjectOf(name);
  const isPending = verbOf(name) === 'image-delete' && pendingDeletes.has(imageId);
  return isPending || images.has(imageId) || waiting.has(name);
}

/** The functions of an image. */
export function imageFunctions(imageId: string): readonly string[] {
  return [functionName('image-upload', imageId), functionName('image-delete', imageId)];
}
