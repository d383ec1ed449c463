import type { IssuedToken } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { bearerToken } from './bearer-token.ts';
import { expiryOf } from './json-web-token.ts';

/** Timeout of the command in milliseconds. */
const TIME_LIMIT = 60_000;

/** Maximum size of the output in bytes. */
const MAX_OUTPUT_SIZE = 65_536;

/**
 * Runs a command that prints a token. Messages contain nothing of its output.
 *
 * @throws CloudError `credentials-unusable`
 */
export async function tokenOfCommand(
  [command = '', ...args]: readonly string[],
  signal: AbortSignal,
): Promise<IssuedToken> {
  const { execa } = await import('execa'); // imported on demand, as in process/command.ts
  signal.throwIfAborted();
  // Passes the whole environment, which may contain credentials for the command.
  const result = await execa(command, args, {
    stdin: 'ignore',
    stderr: 'ignore',
    reject: false,
    timeout: TIME_LIMIT,
    maxBuffer: MAX_OUTPUT_SIZE,
    killDescendants: true,
    cancelSignal: signal,
  });
  signal.throwIfAborted();
  const source = `the output of the command "${command}" of auth`;
  if (!result.failed) {
    const value = bearerToken(result.stdout, source);
    return { value, expiresAt: expiryOf(value) };
  }
  // execa's message quotes the arguments and the output.
  const { timedOut, isMaxBuffer, exitCode, signal: killedBy, code } = result;
  let reason = killedBy === undefined ? `could not be started (${code})` : `was killed by ${killedBy}`;
  if (exitCode !== undefined) reason = `exited with ${exitCode}`;
  if (isMaxBuffer) reason = `printed more than ${MAX_OUTPUT_SIZE} bytes`;
  if (timedOut) reason = `took longer than ${TIME_LIMIT / 1000} s`;
  throw new CloudError(
    'credentials-unusable',
    `the command "${command}" of auth ${reason}; run it by hand to see why`,
  );
}
