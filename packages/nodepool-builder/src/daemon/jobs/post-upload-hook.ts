import { WorkFailError } from '@nodepool-builder/gearman-node';
import type { ImageProvider, Logger, UploadRequest } from '@nodepool-builder/image-builder';
import { createMask, hiddenValues, runCommand, visible } from '@nodepool-builder/image-builder/internal';
import { errorLine } from '../../terms/command-error.ts';

/**
 * An uploaded image was rejected, for instance by a `post-upload-hook`. The cause is the error of the image's deletion.
 */
class RejectedImageError extends WorkFailError {
  /** The image may still be in the provider and has to be deleted later. */
  override get retriable(): boolean {
    return 'cause' in this;
  }
}

/** Settings of {@link runHook}. */
interface HookOptions {
  readonly signal: AbortSignal;
  readonly environment: Readonly<Record<string, string>>;
  /** Variables whose values the log may show. */
  readonly publicVariables: readonly string[];
  readonly logger: Logger;
}

/**
 * Runs a `post-upload-hook` in `/`. An aborted signal ends it with all its processes.
 *
 * @param args as in nodepool since 3.10: name of the provider, external-id of the image, path of the local file
 * @returns the reason why the hook rejects the image; undefined if it accepts it
 */
export async function runHook(
  hook: string,
  args: readonly string[],
  { environment, publicVariables, signal, logger }: HookOptions,
): Promise<string | undefined> {
  const withoutSecrets = createMask(hiddenValues(environment, publicVariables));
  logger.info(`running the hook ${[hook, ...args].join(' ')}`);
  try {
    const { exitCode, signal: ended } = await runCommand(hook, args, {
      cwd: '/',
      env: environment,
      signal,
      onLine: (line) => void logger.info(visible(withoutSecrets(line.trim()))),
    });
    return exitCode === 0 ? undefined : `the hook "${hook}" ended with ${ended ?? `exit code ${exitCode}`}`;
  } catch (error) {
    if (!signal.aborted) return errorLine(error);
    return `the hook "${hook}" did not end in time; check the hook, or raise image-upload-timeout`;
  }
}

/** Deletes an image that was rejected after its upload. Returns the error to throw. */
export async function discardRejected(
  provider: ImageProvider,
  { uploadId, imageId, imageName }: Pick<UploadRequest, 'uploadId' | 'imageId' | 'imageName'>,
  rejection: string,
  signal: AbortSignal,
): Promise<RejectedImageError> {
  try {
    await provider.discard(uploadId, { signal, image: { imageId, imageName } });
    return new RejectedImageError(`${rejection}; the image was deleted from ${provider.name}`);
  } catch (cause) {
    const problem = `the image is still in ${provider.name} and will be deleted later: ${errorLine(cause)}`;
    return new RejectedImageError(`${rejection}; ${problem}`, { cause });
  }
}
