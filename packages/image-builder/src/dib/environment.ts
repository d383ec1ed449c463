import { checkedVariables } from '../build/checked-variables.ts';
import type { DiskImage } from '../disk-image.ts';

/**
 * What disk-image-create gets in its environment besides what it inherits, as nodepool has always had it.
 *
 * @param output path of the image without its extension.
 * @throws ImageError `invalid-configuration` for a value of `env-vars` that is not a string, or holds a NUL
 */
export function dibEnvironment(diskimage: DiskImage, output: string): Record<string, string> {
  const { name, release = '', elementsDir, scriptDir } = diskimage;
  return {
    DIB_RELEASE: `${release}`,
    DIB_IMAGE_NAME: name,
    DIB_IMAGE_FILENAME: output,
    ...(elementsDir !== undefined && { ELEMENTS_PATH: elementsDir }),
    ...(scriptDir !== undefined && { NODEPOOL_SCRIPTDIR: scriptDir }),
    ...checkedVariables(diskimage),
  };
}
