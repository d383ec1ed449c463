/** Maximum size of the output in bytes. */
const MAX_OUTPUT_SIZE = 65_536;

/** Settings of {@link runSecretCommand}. */
export interface SecretCommandOptions {
  /** Standard input. Default: it is closed. */
  readonly input?: Buffer | string;
  /** Timeout in milliseconds. Default: a minute. */
  readonly timeLimit?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a command that prints a secret, such as a token or a signature. The command inherits the whole environment,
 * because it may need credentials from there.
 *
 * @returns the output, and a reason if the command failed, which quotes neither the arguments nor the output
 * @throws the signal's reason
 */
export async function runSecretCommand(
  [command = '', ...args]: readonly string[],
  { input, timeLimit = 60_000, signal }: SecretCommandOptions,
): Promise<{ readonly output: Buffer; readonly reason?: string }> {
  const { execa } = await import('execa'); // imported on demand, as in command.ts
  signal?.throwIfAborted();
  const result = await execa(command, args, {
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
    encoding: 'buffer',
    stripFinalNewline: false, // a signature may end with this byte
    stderr: 'ignore',
    reject: false,
    timeout: timeLimit,
    maxBuffer: MAX_OUTPUT_SIZE,
    killDescendants: true,
    ...(signal !== undefined && { cancelSignal: signal }),
  });
  signal?.throwIfAborted();
  const output = Buffer.from(result.stdout ?? []);
  if (!result.failed) return { output };
  const { timedOut, isMaxBuffer, exitCode, signal: killedBy, code } = result;
  let reason = killedBy === undefined ? `could not be started (${code})` : `was killed by ${killedBy}`;
  if (code === 'ENOENT') reason = 'is not installed';
  if (exitCode !== undefined) reason = `exited with ${exitCode}`;
  if (isMaxBuffer) reason = `wrote more than ${MAX_OUTPUT_SIZE} bytes`;
  if (timedOut) reason = `took longer than ${timeLimit / 1000} s`;
  return { output, reason };
}
