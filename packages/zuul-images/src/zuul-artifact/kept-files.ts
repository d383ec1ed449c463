import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type DiskFile,
  imageFileName,
  makeStateDirectory,
  safeName,
  syncToDisk,
  unlessMissing,
} from '@nodepool-builder/image-builder/module-kit';
import type { ZuulBuild } from '../api/zuul-build.ts';
import { withoutQuery } from '../builds/artifact-url.ts';
import type { ImageArtifact } from '../builds/image-artifact.ts';

/** Bytes of a block in `stat`, whatever the file system's own are (stat(2)). */
const STAT_BLOCK = 512;

/** A whole file. */
export interface KeptFile extends DiskFile {
  /** Bytes that it takes on the disk, holes left out. */
  readonly usage: number;
}

/** What has come of the artifacts of one build, for this try and the next. By then others of them may be the image. */
export class KeptFiles {
  readonly #directory: string;
  /** When the build ended is the time of modification of its whole files: one that was changed since is none. */
  readonly #time: Date;

  private constructor(directory: string, time: Date) {
    this.#directory = directory;
    this.#time = time;
  }

  /** Those of a build in the state directory of its image. With those of other builds nobody will go on. */
  static async open(stateDirectory: string, { uuid, endTime = 0 }: ZuulBuild): Promise<KeptFiles> {
    const own = safeName(uuid);
    for (const name of await readdir(stateDirectory)) {
      if (name !== own) await rm(join(stateDirectory, name), { recursive: true, force: true });
    }
    const directory = join(stateDirectory, own);
    await makeStateDirectory(directory);
    return new KeptFiles(directory, new Date(endTime));
  }

  /** Where downloads keep what has come of files that are not whole. */
  get downloads(): string {
    return join(this.#directory, 'downloads');
  }

  /** Where the file of an artifact goes until it is whole. */
  draft(artifact: ImageArtifact): string {
    return `${this.#path(artifact)}.new`;
  }

  /** Those of the artifacts that are there. */
  async files(artifacts: readonly ImageArtifact[]): Promise<readonly KeptFile[]> {
    const files = await Promise.all(artifacts.map((artifact) => this.#find(artifact)));
    return files.filter((file) => file !== undefined);
  }

  /** Takes the draft for a whole file, which a loss of power does not change any more. */
  async keep(artifact: ImageArtifact): Promise<KeptFile> {
    const [draft, path] = [this.draft(artifact), this.#path(artifact)];
    await utimes(draft, this.#time, this.#time);
    await syncToDisk(draft);
    await rename(draft, path);
    return { format: artifact.format, path, usage: usageOf(await stat(path)) };
  }

  /** Removes all of them. */
  async clear(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Another signature in the query is the same artifact still. */
  #path({ format, url }: ImageArtifact): string {
    const name = createHash('sha256').update(withoutQuery(url)).digest('hex');
    return join(this.#directory, imageFileName(name, format));
  }

  async #find(artifact: ImageArtifact): Promise<KeptFile | undefined> {
    const path = this.#path(artifact);
    const state = await unlessMissing(stat(path));
    if (state?.mtimeMs !== this.#time.getTime()) return undefined;
    return { format: artifact.format, path, usage: usageOf(state) };
  }
}

function usageOf({ blocks }: Stats): number {
  return blocks * STAT_BLOCK;
}
