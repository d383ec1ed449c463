import { ZuulError } from '../api/zuul-error.ts';
import { bearerToken } from './bearer-token.ts';
import type { IssuedToken } from './issued-token.ts';
import { expiryOf } from './json-web-token.ts';

/** Milliseconds that a command has to give a token. */
const TIME_LIMIT = 60_000;

/** Bytes: more is no token. */
const LONGEST_OUTPUT = 65_536;

/**
 * Has a command issue a token: what it writes to its standard output. Nothing of its output gets into a message.
 *
 * @throws ZuulError `credentials-unusable`
 * @throws the signal's reason
 */
export async function tokenOfCommand(
  [command, ...args]: readonly [string, ...string[]],
  signal: AbortSignal,
): Promise<IssuedToken> {
  const { execa } = await import('execa'); // not at the top, as in process/command.ts
  signal.throwIfAborted();
  // With the whole environment: the command deals with credentials, which may be there.
  const result = await execa(command, args, {
    stdin: 'ignore',
    stderr: 'ignore',
    reject: false,
    timeout: TIME_LIMIT,
    maxBuffer: LONGEST_OUTPUT,
    killDescendants: true,
    cancelSignal: signal,
  });
  signal.throwIfAborted();
  const source = `the command "${command}" for a Zuul token`;
  if (result.failed)
    throw new ZuulError('credentials-unusable', `${source} ${faultOf(result)}; run it by hand`);
  const value = bearerToken(result.stdout, source);
  const expiresAt = expiryOf(value);
  return { value, ...(expiresAt !== undefined && { expiresAt }) };
}

/** execa's own message quotes the arguments and the output. */
function faultOf(result: {
  readonly timedOut: boolean;
  readonly isMaxBuffer: boolean;
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly code?: string | undefined;
}): string {
  if (result.timedOut) return `gave none within ${TIME_LIMIT / 1000} s`;
  if (result.isMaxBuffer) return `wrote more than ${LONGEST_OUTPUT} bytes`;
  if (result.exitCode !== undefined) return `ended with ${result.exitCode}`;
  return result.signal === undefined
    ? `could not be started (${result.code})`
    : `was ended by ${result.signal}`;
}
