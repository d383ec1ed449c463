import { readFile } from 'node:fs/promises';
import {
  type IssuedToken,
  runSecretCommand,
  SYSTEM_CLOCK,
  TokenKeeper,
} from '@nodepool-builder/image-builder/internal';
import { type Clock, CloudError } from '@nodepool-builder/image-builder/plugin';
import { ZuulHttp } from '../api/zuul-http.ts';
import type { AuthSettings } from '../zuul-settings.ts';
import { requestToken } from './client-credentials.ts';
import { bearerToken, expiryOf, mintToken } from './json-web-token.ts';

/** Minimum remaining lifetime in milliseconds, because a token may expire on its way. */
const MIN_LIFETIME = 30_000;

/** Bearer tokens for the API. They throw CloudError `credentials-unusable`, and errors of the issuer. */
export type ZuulCredentials = TokenKeeper<IssuedToken>;

/**
 * Creates the credentials of `auth`; undefined for an API that everyone may read. Files are read, and tokens requested,
 * at first use.
 */
export function createCredentials(
  auth: AuthSettings | undefined,
  { http = new ZuulHttp(), clock = SYSTEM_CLOCK }: { readonly http?: ZuulHttp; readonly clock?: Clock } = {},
): ZuulCredentials | undefined {
  const {
    'token-file': file,
    'token-command': command,
    'shared-secret': shared,
    'client-credentials': client,
  } = auth ?? {};
  const issued = (issue: (signal: AbortSignal) => Promise<IssuedToken>): ZuulCredentials =>
    new TokenKeeper(issue, MIN_LIFETIME, clock);
  if (file !== undefined) {
    // It expires at once, so that the file is read for each request, because another program renews it.
    return issued(async () => ({
      value: bearerToken(await readSecret(file), `the token file ${file}`),
      expiresAt: 0,
    }));
  }
  if (command !== undefined) return issued((signal) => tokenOfCommand(command, signal));
  if (shared !== undefined) {
    return issued(async () => mintToken(shared, await readSecret(shared['secret-file']), clock.now()));
  }
  if (client === undefined) return undefined;
  return issued(async (signal) => {
    const secret = await readSecret(client['secret-file']);
    return await requestToken(client, secret, http, clock, signal);
  });
}

/**
 * Runs a command that prints a token. Messages contain nothing of its output.
 *
 * @throws CloudError `credentials-unusable`
 */
async function tokenOfCommand(command: readonly string[], signal: AbortSignal): Promise<IssuedToken> {
  const { output, reason } = await runSecretCommand(command, { signal });
  const name = `the command "${command[0]}" of auth`;
  if (reason !== undefined) {
    throw new CloudError('credentials-unusable', `${name} ${reason}; run it by hand to see why`);
  }
  const value = bearerToken(output.toString(), `the output of ${name}`);
  return { value, expiresAt: expiryOf(value) };
}

/** Reads a secret without the line end that editors add. It is read at each use, so that a new one needs no restart. */
async function readSecret(path: string): Promise<string> {
  const content = await readFile(path, 'utf8').catch((cause: unknown) => {
    const message = `${(cause as Error).message}; correct the path or its permissions`;
    throw new CloudError('credentials-unusable', `cannot read an auth file: ${message}`, { cause });
  });
  const secret = content.replace(/\r?\n$/, '');
  if (secret !== '') return secret;
  throw new CloudError('credentials-unusable', `auth file ${path} is empty; write the token to it`);
}
