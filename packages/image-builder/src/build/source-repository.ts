import { realpathSync } from 'node:fs';
import { lstat, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { SYSTEM_PATH } from '../cleanup/privileged.ts';
import { stripCredentials } from './material-address.ts';

/** Timeout of a git command, in milliseconds. */
const GIT_TIMEOUT = 20_000;

/** Maximum size of the output of a git command, in characters. */
const MAX_GIT_OUTPUT = 4 * 2 ** 20;

/** Configuration of all git commands. Repositories of other users are read, but none of their programs run. */
const CONFIGURATION = ['safe.directory=*', 'core.fsmonitor=false', 'core.hooksPath=/dev/null'];

/** Wraps a command so that it runs in the namespace of a build. */
export type Wrap = (command: string, args: readonly string[], cwd: string) => [string, string[]];

/** A git repository on this host. */
export interface SourceRepository {
  /** The checked-out commit. */
  readonly commit: string;
  /** `git+https://HOST/PATH@COMMIT`, from the remote `origin`; absent without one. */
  readonly uri?: string;
  /** Returns whether a file or directory differs from the commit, or is not part of it. */
  readonly isModified: (path: string) => boolean;
}

/** Returns the function `findRepository` of a build's context, which reads each repository once. */
export function repositoryFinder(wrap: () => Promise<Wrap | undefined>, signal: AbortSignal) {
  const known = new Map<string, Promise<SourceRepository | undefined>>();
  return async (path: string): Promise<SourceRepository | undefined> => {
    const real = await realpath(path).catch(() => undefined);
    const top = real === undefined ? undefined : await topOf(real);
    if (top === undefined) return undefined;
    const read =
      known.get(top) ?? readRepository(top, async (...args) => await git(top, args, await wrap(), signal));
    known.set(top, read);
    return await read;
  };
}

async function readRepository(
  top: string,
  run: (...args: readonly string[]) => Promise<string | undefined>,
): Promise<SourceRepository | undefined> {
  const commit = (await run('rev-parse', '--verify', 'HEAD'))?.trim();
  if (commit === undefined) return undefined;
  const url = (await run('config', '--get', 'remote.origin.url'))?.trim();
  const status = await run('status', '--porcelain', '-z', '--no-renames', '--ignore-submodules=dirty');
  const changed = status?.split('\0').map((entry) => entry.slice(3));
  return {
    commit,
    ...(url && { uri: gitUri(url, commit) }),
    isModified: (path) => {
      const inside = relative(top, withoutLinks(path));
      // Git names a directory without a tracked file, not the files in it.
      return changed?.some((name) => name !== '' && (isBelow(name, inside) || isBelow(inside, name))) ?? true;
    },
  };
}

/**
 * Runs git with the permissions of the build's commands, without the settings of the user and of the system.
 *
 * @returns its output; undefined if it fails
 */
async function git(
  top: string,
  args: readonly string[],
  wrap: Wrap | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { execa } = await import('execa'); // imported on demand, as in process/command.ts
  const all = ['-C', top, ...CONFIGURATION.flatMap((option) => ['-c', option]), ...args];
  const [program, programArgs] = wrap?.('git', all, '/') ?? ['git', all];
  const result = await execa(program, programArgs, {
    cwd: '/',
    env: {
      PATH: SYSTEM_PATH,
      LC_ALL: 'C',
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_TERMINAL_PROMPT: '0',
      GIT_ALLOW_PROTOCOL: 'none', // a partial clone would fetch missing objects
    },
    extendEnv: false,
    stdin: 'ignore',
    stderr: 'ignore',
    reject: false,
    timeout: GIT_TIMEOUT,
    maxBuffer: MAX_GIT_OUTPUT,
    cleanup: false,
    cancelSignal: signal,
    stripFinalNewline: false,
  });
  signal.throwIfAborted();
  return result.failed ? undefined : result.stdout;
}

/** Returns whether a relative path equals another one, or is below it. */
function isBelow(path: string, other: string): boolean {
  const directory = other.endsWith('/') || other === '' ? other : `${other}/`;
  return path === other || path.startsWith(directory);
}

/** Returns a path without symbolic links, as git reports it. */
function withoutLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // it was deleted
  }
}

/** Returns the nearest directory at or above a path that has an entry `.git`. */
async function topOf(path: string): Promise<string | undefined> {
  const state = await lstat(join(path, '.git')).catch(() => undefined);
  if (state !== undefined) return path;
  return dirname(path) === path ? undefined : await topOf(dirname(path));
}

/** Formats the address of a commit as SLSA does, without credentials. */
export function gitUri(url: string, commit: string): string {
  const [, host, path] = /^((?:[^/@:]+@)?[^/:]+):(?!\/\/)(.*)$/.exec(url) ?? [];
  const isPath = host === undefined && !url.includes('://');
  const absolute = isPath
    ? `file://${url}`
    : host === undefined
      ? url
      : `ssh://${host}/${path?.replace(/^\//, '')}`;
  return stripCredentials(`git+${absolute.replace(/^git\+/, '')}@${commit}`);
}
