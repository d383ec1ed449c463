import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../process/inherited-environment.ts';
import { type GitResult, runGit } from './git.ts';
import { topOf } from './source-repository.ts';

/** Time limit of a fetch, in milliseconds. */
const FETCH_TIMEOUT = 300_000;

/** Protocols of addresses that a statement may name. */
const PROTOCOLS = 'file:git:http:https:ssh';

/** `git+https://HOST/PATH@COMMIT`. */
const ADDRESS = /^git\+((?:file|git|https?|ssh):\/\/.+)@[0-9a-f]+$/;

/** Variables that a fetch inherits: proxies and certificate authorities. */
const NETWORK_VARIABLE =
  /^(?:(?:https?|all|no)_proxy|SSL_CERT_FILE|SSL_CERT_DIR|CURL_CA_BUNDLE|GIT_SSL_CAINFO)$/i;

/** Filters of attributes that only programs outside git can apply. */
const FILTERS = ['lfs', 'git-crypt'];

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** Whether a text is the name of a commit. */
export function isCommit(text: string | undefined): text is string {
  return text !== undefined && COMMIT.test(text);
}

/** A commit that a statement records. */
export interface RecordedCommit {
  readonly commit: string;
  /** Address of the repository, as in the material. */
  readonly uri: string | undefined;
}

/** Work tree of a commit, or the reason why the commit cannot be had. */
export type Checkout = { readonly directory: string } | { readonly reason: string };

/** Checks out commits into a private directory. Repositories of this host are read, and stay as they are. */
export class CommitCheckouts {
  readonly #directory: string;
  readonly #signal: AbortSignal;
  readonly #network: Readonly<Record<string, string>>;
  readonly #known = new Map<string, Promise<Checkout>>();

  /** @param environment with the variables of proxies */
  constructor(directory: string, environment: Environment, signal: AbortSignal) {
    this.#directory = directory;
    this.#signal = signal;
    this.#network = {
      GIT_ALLOW_PROTOCOL: PROTOCOLS,
      GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o ConnectTimeout=30',
      ...Object.fromEntries(
        Object.entries(environment).filter(
          (entry): entry is [string, string] => entry[1] !== undefined && NETWORK_VARIABLE.test(entry[0]),
        ),
      ),
    };
  }

  /**
   * Checks out a commit, from a repository of this host if one has it, else from its address. Its remote `origin` has that
   * address.
   *
   * @param near paths in repositories that may have it
   * @param name of the directory of the work tree
   */
  async checkOut(recorded: RecordedCommit, near: readonly string[], name: string): Promise<Checkout> {
    const { commit, uri = '' } = recorded;
    const key = `${commit} ${uri}`;
    const top = join(this.#directory, `${this.#known.size + 1}`, name);
    const made = this.#known.get(key) ?? this.#checkOut(recorded, near, top);
    this.#known.set(key, made);
    return await made;
  }

  /** Reason why a commit is certainly not at its address; undefined if it is there, or the address cannot be reached. */
  async reasonIfGone({ commit, uri }: RecordedCommit): Promise<string | undefined> {
    const url = urlOf(uri);
    if (url === undefined) return undefined;
    const top = join(this.#directory, 'search');
    try {
      await this.#create(top, commit, url);
      const fetched = await this.#fetch(top, commit, url, ['--filter=blob:none']);
      return fetched?.isReached ? fetched.reason : undefined;
    } finally {
      await rm(top, { recursive: true, force: true });
    }
  }

  async #checkOut({ commit, uri }: RecordedCommit, near: readonly string[], top: string): Promise<Checkout> {
    const url = urlOf(uri);
    const reasons: string[] = [];
    for (const repository of await repositoriesAt(near)) {
      const objects = await this.#objectsWith(commit, repository);
      const reason =
        objects === undefined
          ? `${repository} does not have it`
          : await this.#fill(top, commit, url, async () => {
              await writeFile(join(top, '.git/objects/info/alternates'), `${objects}\n`);
              return undefined;
            });
      if (reason === undefined) return { directory: top };
      reasons.push(reason);
    }
    if (url !== undefined) {
      const reason = await this.#fill(
        top,
        commit,
        url,
        async () => (await this.#fetch(top, commit, url))?.reason,
      );
      if (reason === undefined) return { directory: top };
      reasons.push(reason);
    } else if (reasons.length === 0) {
      reasons.push('it has no address, and its repository is no longer on this host');
    }
    return { reason: `commit ${commit.slice(0, 12)} cannot be had: ${reasons.join('; ')}` };
  }

  /** Directory of the objects of a repository that has the commit. */
  async #objectsWith(commit: string, repository: string): Promise<string | undefined> {
    const found = await this.#git(repository, 'cat-file', '-e', `${commit}^{commit}`);
    if ('reason' in found) return undefined;
    const path = await this.#git(repository, 'rev-parse', '--path-format=absolute', '--git-path', 'objects');
    return 'output' in path ? path.output.replace(/\n$/, '') : undefined;
  }

  /** Makes a repository and checks out the commit; leaves nothing if that fails. @returns the reason of a failure */
  async #fill(
    top: string,
    commit: string,
    url: string | undefined,
    addObjects: () => Promise<string | undefined>,
  ): Promise<string | undefined> {
    const reason =
      (await this.#create(top, commit, url)) ?? (await addObjects()) ?? (await this.#checkOutIn(top, commit));
    if (reason !== undefined) await rm(top, { recursive: true, force: true });
    return reason;
  }

  async #create(top: string, commit: string, url: string | undefined): Promise<string | undefined> {
    await mkdir(top, { recursive: true, mode: 0o700 });
    const format = commit.length === 40 ? 'sha1' : 'sha256';
    const created = await this.#git(top, 'init', '-q', '--template=', `--object-format=${format}`);
    if ('reason' in created) return created.reason;
    await mkdir(join(top, '.git/objects/info'), { recursive: true });
    if (url === undefined) return undefined;
    return reasonOf(await this.#git(top, 'config', 'remote.origin.url', url));
  }

  async #checkOutIn(top: string, commit: string): Promise<string | undefined> {
    const reason = reasonOf(await this.#git(top, 'checkout', '-q', '--detach', commit));
    if (reason !== undefined) return reason;
    const patterns = FILTERS.map((filter) => `:(attr:filter=${filter})`);
    const filtered = await this.#git(top, 'ls-files', '--', ...patterns);
    if ('reason' in filtered) return filtered.reason;
    return filtered.output === '' ? undefined : `files of it need a filter: ${FILTERS.join(' or ')}`;
  }

  /** Fetches a commit. Some servers give only the heads and tags that they list. @returns undefined once it is there */
  async #fetch(
    top: string,
    commit: string,
    url: string,
    options: readonly string[] = [],
  ): Promise<{ readonly reason: string; readonly isReached: boolean } | undefined> {
    const fetch = [
      'fetch',
      '-q',
      '--no-tags',
      '--no-auto-maintenance',
      '--no-recurse-submodules',
      ...options,
    ];
    const one = await this.#git(top, ...fetch, '--depth=1', '--', url, commit);
    if ('output' in one) return undefined;
    const refs = ['heads', 'tags'].map((kind) => `+refs/${kind}/*:refs/recorded/${kind}/*`);
    const all = await this.#git(top, ...fetch, '--', url, ...refs);
    if ('reason' in all) return { reason: `${url}: ${all.reason}`, isReached: false };
    const found = await this.#git(top, 'cat-file', '-e', `${commit}^{commit}`);
    return 'output' in found ? undefined : { reason: `${url} no longer has it`, isReached: true };
  }

  async #git(top: string, ...args: readonly string[]): Promise<GitResult> {
    const network = args[0] === 'fetch' ? { environment: this.#network, timeout: FETCH_TIMEOUT } : {};
    return await runGit(['-C', top, ...args], { signal: this.#signal, ...network });
  }
}

function urlOf(uri: string | undefined): string | undefined {
  return ADDRESS.exec(uri ?? '')?.[1];
}

function reasonOf(result: GitResult): string | undefined {
  return 'reason' in result ? result.reason : undefined;
}

/** Repositories at or above some paths, each once. */
async function repositoriesAt(paths: readonly string[]): Promise<readonly string[]> {
  const tops = await Promise.all(paths.map(topOf));
  return [...new Set(tops.filter((top) => top !== undefined))];
}
