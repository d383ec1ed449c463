import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf, runSecretCommand, unlessMissing } from '@nodepool-builder/image-builder/internal';
import { cloudError, JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { RepositoryName } from './oci-settings.ts';

/**
 * Credentials for a registry: a user name and a password, or an identity token, which is exchanged for access tokens.
 */
export interface Credentials {
  readonly username?: string;
  readonly password?: string;
  /** Refresh token. */
  readonly identityToken?: string;
}

interface AuthEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** Lists the credentials files, in podman's order. The first file with an entry for the registry takes precedence. */
export function authFiles(named: string | undefined, { env, home }: AuthEnvironment): readonly string[] {
  if (named !== undefined) return [named];
  if (env.REGISTRY_AUTH_FILE) return [env.REGISTRY_AUTH_FILE];
  return [
    ...(env.XDG_RUNTIME_DIR ? [join(env.XDG_RUNTIME_DIR, 'containers/auth.json')] : []),
    join(env.XDG_CONFIG_HOME || join(home, '.config'), 'containers/auth.json'),
    join(env.DOCKER_CONFIG || join(home, '.docker'), 'config.json'),
  ];
}

const TEXT = { type: ['string', 'null'] } as const;

/** Entries by registry. Entries of other registries are not validated. */
const ENTRIES = { type: ['object', 'null'] } as const;

const AUTH_FILE = new JsonReader({
  type: 'object',
  properties: { auths: ENTRIES, credHelpers: ENTRIES, credsStore: {} },
});

/** Entry of the registry. */
const AUTH = new JsonReader({
  type: ['object', 'null'],
  properties: { auth: TEXT, identitytoken: TEXT, username: TEXT, password: TEXT },
});

type AuthFile = ReturnType<(typeof AUTH_FILE)['parse']>;

/**
 * Finds the credentials for a repository. Reads the files at each call, because a login may renew them.
 *
 * @param subject subject of errors: `provider oci`
 * @returns undefined if no file has credentials; requests are then sent without
 * @throws CloudError `auth-failed` for a damaged file or a helper that fails
 */
export async function findCredentials(
  files: readonly string[],
  repository: RepositoryName,
  subject: string,
): Promise<Credentials | undefined> {
  for (const path of files) {
    const file = await readAuthFile(path, subject);
    const found = file && (await lookUp(file, repository, `${subject}: ${path}`));
    if (found !== undefined) return found;
  }
  return undefined;
}

async function readAuthFile(path: string, subject: string): Promise<AuthFile | undefined> {
  try {
    const text = await unlessMissing(readFile(path, 'utf8'));
    return text === undefined ? undefined : AUTH_FILE.parse(text);
  } catch (error) {
    const reason = errnoOf(error) ?? (error as Error).message;
    throw cloudError('auth-failed', `${subject}: ${path}`, `it cannot be read: ${reason}`);
  }
}

async function lookUp(
  { auths, credHelpers, credsStore }: AuthFile,
  repository: RepositoryName,
  subject: string,
): Promise<Credentials | undefined> {
  const byName = new Map(Object.entries(Object(auths)).map(([name, entry]) => [normalized(name), entry]));
  const { host } = repository;
  const helpers = Object(credHelpers) as Readonly<Record<string, unknown>>;
  const helper = Object.hasOwn(helpers, host) ? helpers[host] : credsStore;
  if (typeof helper === 'string' && helper !== '') {
    const found = await askHelper(
      helper,
      host === 'docker.io' ? 'https://index.docker.io/v1/' : host,
      subject,
    );
    if (found !== undefined) return found;
  }
  for (const name of namesOf(repository)) {
    const { auth, identitytoken, username, password } = readAuth(byName.get(name), `${subject}: "${name}"`);
    if (identitytoken) return { identityToken: identitytoken };
    if (auth) return split(Buffer.from(auth, 'base64').toString());
    if (username) return { username, password: password ?? '' };
  }
  return undefined;
}

function readAuth(entry: unknown, subject: string): NonNullable<ReturnType<(typeof AUTH)['check']>> {
  try {
    return AUTH.check(entry ?? null) ?? {};
  } catch (error) {
    throw cloudError('auth-failed', subject, `it cannot be read: ${(error as Error).message}`);
  }
}

/** Yields `registry/ci/images`, `registry/ci`, `registry`. As in podman, the first known name takes precedence. */
function* namesOf({ host, path }: RepositoryName): Generator<string> {
  const words = [host, ...path.split('/')];
  for (let length = words.length; length > 0; length -= 1) yield words.slice(0, length).join('/');
}

/** Normalizes a registry key, which may be a URL in docker's file. */
function normalized(name: string): string {
  const plain = name.replace(/^https?:\/\//, '').replace(/\/(?:v[12]\/?)?$/, '');
  return plain === 'index.docker.io' ? 'docker.io' : plain;
}

function split(text: string): Credentials | undefined {
  const at = text.indexOf(':');
  if (at === -1) return undefined;
  return { username: text.slice(0, at), password: text.slice(at + 1) };
}

/**
 * Runs a docker credential helper, `docker-credential-<name> get`, which writes the password to its standard output.
 */
async function askHelper(name: string, server: string, subject: string): Promise<Credentials | undefined> {
  const program = `docker-credential-${name}`;
  if (!/^[\w.-]+$/.test(name))
    throw cloudError('auth-failed', subject, `"${name}" is not a valid program name`);
  const failed = (reason: string): Error => cloudError('auth-failed', `${subject}: ${program}`, reason);
  const { output, reason } = await runSecretCommand([program, 'get'], { input: server });
  if (reason !== undefined) {
    // Usual output of a helper without an entry.
    if (/credentials not found/i.test(output.toString())) return undefined;
    throw failed(`it ${reason}`);
  }
  const { Username: username, Secret: secret } = HELPER_REPLY.parse(output.toString(), (why) =>
    failed(`its output cannot be read: ${why}`),
  );
  if (!secret) return undefined;
  return username === '<token>' ? { identityToken: secret } : { username: username ?? '', password: secret };
}

const HELPER_REPLY = new JsonReader({ type: 'object', properties: { Username: TEXT, Secret: TEXT } });
