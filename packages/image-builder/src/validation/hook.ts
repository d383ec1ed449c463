import { ImageError } from '../errors.ts';
import type { ImageFormat } from '../formats.ts';
import type { ValidationParts } from './validation-parts.ts';

/**
 * Runs a command that decides whether an image is good.
 *
 * @throws ImageError `validation-failed`, `command-not-found`
 */
export async function runHook(
  hook: readonly string[],
  best: ImageFormat,
  { context, run, log }: ValidationParts,
): Promise<void> {
  const [command = '', ...args] = hook;
  const { imageId, imageName, formats, output } = context;
  const paths = formats.map((format) => [variableOf(format), output(format)]);
  const result = await run(command, [...args, output(best)], {
    env: { NODEPOOL_IMAGE_ID: imageId, NODEPOOL_DISKIMAGE: imageName, ...Object.fromEntries(paths) },
  });
  if (result.exitCode === 0) return;
  const end = result.signal ?? `exit code ${result.exitCode}`;
  const said = result.lastLines.length === 0 ? '' : `, saying: ${result.lastLines.slice(-3).join(' / ')}`;
  throw new ImageError(
    'validation-failed',
    `image ${imageId} is not published: its hook "${command}" ended with ${end}${said}; see ${log.path}`,
    { cause: result },
  );
}

function variableOf(format: ImageFormat): string {
  return `NODEPOOL_IMAGE_${format.toUpperCase().replaceAll('-', '_')}`;
}
