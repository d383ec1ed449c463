import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildNamespace } from '../cleanup/build-namespace.ts';
import { type LoopDevice, loopDevices, loopsBelow } from '../cleanup/loop-devices.ts';
import { removeTree } from '../cleanup/privileged.ts';
import { type ProcessGroupRecord, recordOf } from '../cleanup/processes.ts';
import { undo } from '../cleanup/undo.ts';
import { STATE_DIRECTORY, STATE_FILE } from '../modes.ts';
import { unlessMissing } from '../system-error.ts';

/** Hidden names, so that no image id is one. Each file holds one JSON value a line. */
const PROCESS_GROUPS = '.process-groups';
const TEMPORARY_DIRECTORIES = '.temporary-directories';

/**
 * A private directory for something that is not ready, with a record of all that has to be undone before it can
 * be removed. The record outlives this process.
 */
export class Staging {
  readonly directory: string;
  #namespace: Promise<BuildNamespace | undefined> | undefined;
  /** Loop devices seen from within the namespace; later their files may be unreachable. */
  #loops: readonly LoopDevice[] = [];

  /** What an earlier process left in `directory`. */
  constructor(directory: string) {
    this.directory = directory;
  }

  /** Makes a new one below `parent`. Its name is random: an image id could hold what a shell expands. */
  static async create(parent: string): Promise<Staging> {
    return new Staging(await mkdtemp(join(parent, 'stage-')));
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Makes a directory below `parent` that goes away together with this one. */
  async temporaryDirectory(parent: string): Promise<string> {
    const path = join(await realpath(parent), `nodepool-${randomUUID()}`);
    // The record first: a directory that is recorded but missing does no harm.
    await appendFile(this.path(TEMPORARY_DIRECTORIES), `${JSON.stringify(path)}\n`, { mode: STATE_FILE });
    await mkdir(path, { mode: STATE_DIRECTORY });
    return path;
  }

  /** Remembers a process group, so that it is found even if this process dies. */
  recordProcessGroup(leader: number): void {
    const record = recordOf(leader);
    const line = `${JSON.stringify(record)}\n`;
    if (record !== undefined) appendFileSync(this.path(PROCESS_GROUPS), line, { mode: STATE_FILE });
  }

  /**
   * The namespaces of the commands that run here, opened with the first of them.
   *
   * @param onRefused called once if the host allows none.
   */
  async namespace(onRefused: (reason: string) => void): Promise<BuildNamespace | undefined> {
    this.#namespace ??= BuildNamespace.open((pid) => this.recordProcessGroup(pid)).then((opened) => {
      if (typeof opened !== 'string') return opened;
      onRefused(opened);
      return undefined;
    });
    return await this.#namespace;
  }

  /** Ends all processes in the namespaces, so that nothing writes to the files here. */
  async endNamespace(): Promise<void> {
    const namespace = await this.#namespace;
    this.#namespace = undefined;
    if (namespace === undefined) return;
    const roots = [this.directory, ...(await this.#temporaryDirectories())];
    this.#loops = [...this.#loops, ...loopsBelow(await loopDevices(), roots)];
    await namespace.close();
  }

  /**
   * Ends and undoes what was begun here, then removes all files.
   *
   * @throws ImageError `cleanup-failed`; then no file was removed
   */
  async clear(): Promise<void> {
    await this.endNamespace();
    const temporary = await this.#temporaryDirectories();
    const groups = await readLines<ProcessGroupRecord>(this.path(PROCESS_GROUPS));
    await undo({ roots: [this.directory, ...temporary], groups }, this.#loops);
    // This directory last: it has the record.
    for (const path of [...temporary, this.directory]) await removeTree(path);
  }

  async #temporaryDirectories(): Promise<string[]> {
    return await readLines<string>(this.path(TEMPORARY_DIRECTORIES));
  }
}

async function readLines<T>(path: string): Promise<T[]> {
  const text = (await unlessMissing(readFile(path, 'utf8'))) ?? '';
  // What follows the last line end was cut short: its process group or directory was not begun.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T);
}
