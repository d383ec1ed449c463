import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildNamespace } from '../cleanup/build-namespace.ts';
import { type LoopDevice, loopDevices, loopsBelow } from '../cleanup/loop-devices.ts';
import { removeTree } from '../cleanup/privileged.ts';
import { PROCESS_GROUP_RECORD, recordOf } from '../cleanup/processes.ts';
import { undo } from '../cleanup/undo.ts';
import { ImageError } from '../errors.ts';
import { JsonReader } from '../json-reader.ts';
import { STATE_DIRECTORY, STATE_FILE } from '../modes.ts';
import { TEXT } from '../settings-schema.ts';
import { unlessMissing } from '../system-error.ts';

/** Hidden names, which cannot be image ids. Each file has one JSON value per line. */
const PROCESS_GROUPS = '.process-groups';
const TEMPORARY_DIRECTORIES = '.temporary-directories';

const PROCESS_GROUP = new JsonReader(PROCESS_GROUP_RECORD);

const DIRECTORY = new JsonReader(TEXT);

/**
 * A private directory for an unfinished build or conversion, with a record of everything that must be undone on its
 * removal.
 */
export class Staging {
  readonly directory: string;
  #namespace: Promise<BuildNamespace | undefined> | undefined;
  /** Loop devices seen from within the namespace, because their files may later be unreachable. */
  #loops: readonly LoopDevice[] = [];
  #secretFiles: readonly string[] = [];

  /** Opens the directory of an earlier process. */
  constructor(directory: string) {
    this.directory = directory;
  }

  /** Creates the directory with a random name, because an image id may contain shell metacharacters. */
  static async create(parent: string): Promise<Staging> {
    return new Staging(await mkdtemp(join(parent, 'stage-')));
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Creates a directory below `parent` that is removed together with this one. */
  async temporaryDirectory(parent: string): Promise<string> {
    const path = join(await realpath(parent), `nodepool-${randomUUID()}`);
    // The record comes first, because a recorded directory that does not exist is harmless.
    await appendFile(this.path(TEMPORARY_DIRECTORIES), `${JSON.stringify(path)}\n`, { mode: STATE_FILE });
    await mkdir(path, { mode: STATE_DIRECTORY });
    return path;
  }

  /** Records a process group, so that it is found even if this process dies. */
  recordProcessGroup(leader: number): void {
    const record = recordOf(leader);
    const line = `${JSON.stringify(record)}\n`;
    if (record !== undefined) appendFileSync(this.path(PROCESS_GROUPS), line, { mode: STATE_FILE });
  }

  /**
   * Hides files from all commands that run here. Call it before the first of them.
   *
   * @throws ImageError `invalid-configuration` if the commands have no namespace in which files can be hidden
   */
  async hideFiles(paths: readonly string[]): Promise<void> {
    if (paths.length === 0) return;
    this.#secretFiles = paths;
    let reason = '';
    if ((await this.namespace((refused) => (reason = refused))) !== undefined) return;
    throw new ImageError(
      'invalid-configuration',
      `builds have no namespaces of their own here (${reason}), so their commands could read ${paths.join(', ')}; ` +
        'use a sign-command instead of a key file, or run this program as root',
    );
  }

  /**
   * Returns the namespace of the commands that run here, which is opened for the first of them.
   *
   * @param onRefused called once if the host does not allow namespaces
   */
  async namespace(onRefused: (reason: string) => void): Promise<BuildNamespace | undefined> {
    this.#namespace ??= BuildNamespace.open((pid) => this.recordProcessGroup(pid), this.#secretFiles).then(
      (opened) => {
        if (typeof opened !== 'string') return opened;
        onRefused(opened);
        return undefined;
      },
    );
    return await this.#namespace;
  }

  /** Ends all processes in the namespace, so that nothing writes to the files here. */
  async endNamespace(): Promise<void> {
    const namespace = await this.#namespace;
    this.#namespace = undefined;
    if (namespace === undefined) return;
    const roots = [this.directory, ...(await this.#temporaryDirectories())];
    this.#loops = [...this.#loops, ...loopsBelow(await loopDevices(), roots)];
    await namespace.close();
  }

  /**
   * Ends the processes of the build, undoes its mounts and loop devices, then removes all files.
   *
   * @throws ImageError `cleanup-failed`; no file was then removed
   */
  async clear(): Promise<void> {
    await this.endNamespace();
    const temporary = await this.#temporaryDirectories();
    const groups = await readLines(this.path(PROCESS_GROUPS), PROCESS_GROUP);
    await undo({ roots: [this.directory, ...temporary], groups }, this.#loops);
    // This directory is last, because it contains the record.
    for (const path of [...temporary, this.directory]) await removeTree(path);
  }

  async #temporaryDirectories(): Promise<string[]> {
    return await readLines(this.path(TEMPORARY_DIRECTORIES), DIRECTORY);
  }
}

async function readLines<T>(path: string, reader: { parse(line: string): T }): Promise<T[]> {
  const text = (await unlessMissing(readFile(path, 'utf8'))) ?? '';
  // A truncated last line belongs to a process group or directory that was never started.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => reader.parse(line));
}
