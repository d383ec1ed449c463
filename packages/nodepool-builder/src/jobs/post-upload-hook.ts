import {
  createMask,
  type ImageProvider,
  type Logger,
  runCommand,
  secretValues,
  visible,
} from '@nodepool-builder/image-builder';

/** A `post-upload-hook` said no, or could not be asked. */
export class PostUploadHookError extends Error {
  override readonly name = 'PostUploadHookError';
  /** Whether the image may still be there, so that it has to be removed later. */
  readonly retriable: boolean;

  constructor(message: string, retriable: boolean, options?: ErrorOptions) {
    super(message, options);
    this.retriable = retriable;
  }
}

/** Settings of {@link objectionOf}. */
export interface HookOptions {
  /** Ends the hook, with all its processes. */
  readonly signal: AbortSignal;
  readonly environment: Readonly<Record<string, string>>;
  /** Takes what the hook prints. */
  readonly logger: Logger;
}

/**
 * Runs a `post-upload-hook`, in `/`.
 *
 * @param args what nodepool gives it since 3.10: the provider's name, the image's id there, the path of the local file
 * @returns why the image is not good; undefined if it is
 */
export async function objectionOf(
  hook: string,
  args: readonly string[],
  { environment, signal, logger }: HookOptions,
): Promise<string | undefined> {
  const withoutSecrets = createMask([...secretValues(), ...secretValues(environment)]);
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
    if (signal.aborted) {
      return `the hook "${hook}" did not end in time; look why, or raise image-upload-timeout`;
    }
    return error instanceof Error ? error.message : String(error);
  }
}

/** Removes the image that a hook objects to. Returns what to throw. */
export async function withdrawn(
  provider: ImageProvider,
  uploadId: string,
  objection: string,
  signal: AbortSignal,
): Promise<PostUploadHookError> {
  try {
    await provider.discard(uploadId, { signal });
    return new PostUploadHookError(`${objection}; the image was deleted from ${provider.name}`, false);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `${objection}; the image could not be deleted from ${provider.name} yet: ${reason}`;
    return new PostUploadHookError(message, true, { cause });
  }
}
