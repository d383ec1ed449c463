/** Disk images that every builder can build. */
const DISK_IMAGES = Array.from({ length: 10 }, (_, index) => `debian-${index}`);

/** Functions of the worker for builds, which are the same for all builders. */
export const BUILD_FUNCTIONS: readonly string[] = DISK_IMAGES.map((name) => `image-build:${name}`);

/** Functions of the worker for uploads and deletions, for images that only this builder has. */
export function imageFunctions(builder: number, images: number): string[] {
  return Array.from({ length: images }, (_, index) => {
    const number = String(builder * images + index).padStart(10, '0');
    const imageId = `${DISK_IMAGES[index % DISK_IMAGES.length]}-${number}-k7f3q2xa`;
    return [`image-upload:${imageId}`, `image-delete:${imageId}`];
  }).flat();
}
