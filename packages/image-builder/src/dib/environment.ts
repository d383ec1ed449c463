import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';

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

function checkedVariables({ name, envVars = {} }: DiskImage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(envVars).map(([key, value]) => {
      const fault = faultOf(value);
      if (fault === undefined) return [key, value as string];
      throw new ImageError(
        'invalid-configuration',
        `disk image "${name}": the value of ${key} in env-vars ${fault}`,
      );
    }),
  );
}

/** Never the value: it may be a secret. */
function faultOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'is not a string; put it in quotes';
  return value.includes('\0') ? 'holds a NUL; remove that' : undefined;
}
