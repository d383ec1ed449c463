import type { CoreContext } from '../build/build-context.ts';
import type { ImageValidation } from '../disk-image.ts';
import { ImageError } from '../errors.ts';
import { isConvertible } from '../formats/convert.ts';
import { FORMAT_NAMES, type ImageFormat } from '../formats.ts';
import { describeEnd } from '../process/command.ts';
import { bootImage } from './boot.ts';

/** Formats in the order of preference for a validation. A raw image needs no tools. */
const BEST_FIRST: readonly ImageFormat[] = ['raw', ...FORMAT_NAMES];

/**
 * Rejects a validation that no image in these formats can pass.
 *
 * @throws ImageError `format-unavailable` for a boot without a format that QEMU reads
 */
export function checkValidation(
  name: string,
  { boot }: ImageValidation,
  formats: readonly ImageFormat[],
): void {
  if (boot === undefined || formats.some(isConvertible)) return;
  throw new ImageError(
    'format-unavailable',
    `disk image "${name}" has a boot test, but is built as ${formats.join(', ')}, ` +
      'which QEMU cannot boot; add raw or qcow2 to its formats',
  );
}

/**
 * Validates an image.
 *
 * @throws ImageError `validation-failed`, `command-not-found`
 * @throws the reason of the build's signal
 */
export async function validateImage({ hook, boot }: ImageValidation, context: CoreContext): Promise<void> {
  const formats = BEST_FIRST.filter((format) => context.formats.includes(format));
  const [best] = formats;
  const bootable = formats.find(isConvertible);
  if (hook !== undefined && best !== undefined) {
    context.log('validating the image with its hook');
    await runHook(hook, best, context);
  }
  if (boot !== undefined && bootable !== undefined) {
    context.log('validating the image with a boot test');
    await bootImage(boot, bootable, context);
  }
}

async function runHook(hook: readonly string[], best: ImageFormat, context: CoreContext): Promise<void> {
  const [command = '', ...args] = hook;
  const { imageId, diskimage, formats, outputPath, buildLog } = context;
  const paths = formats.map((format) => [
    `NODEPOOL_IMAGE_${format.toUpperCase().replaceAll('-', '_')}`,
    outputPath(format),
  ]);
  const result = await context.runLogged(command, [...args, outputPath(best)], {
    env: { NODEPOOL_IMAGE_ID: imageId, NODEPOOL_DISKIMAGE: diskimage.name, ...Object.fromEntries(paths) },
  });
  if (result.exitCode === 0) return;
  const message = `image ${imageId} is not published: its hook "${command}" ${describeEnd(result)}; see ${buildLog.name}`;
  throw new ImageError('validation-failed', message, { cause: result });
}
