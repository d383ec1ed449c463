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
} from '@nodepool-builder/image-builder/internal';
import type { ZuulBuild } from '../api/zuul-build.ts';
import type { ImageArtifact } from '../builds/image-artifact.ts';
import { nameOf } from '../download/artifact-url.ts';

/** Size of a block in the result of stat(2), in bytes, on every file system. */
const STAT_BLOCK = 512;

/** A complete file. */
export interface KeptFile extends DiskFile {
  /** Size on disk in bytes, without holes. */
  readonly usage: number;
  /** SHA-256 in hexadecimal; unknown for a file of an earlier attempt. */
  readonly sha256?: string;
}

/** Downloaded artifacts of one build, for this attempt and the next one, which may need other artifacts. */
export class KeptFiles {
  readonly #directory: string;
  /** End of the build, the modification time of complete files. A file that was changed later has another time. */
  readonly #time: Date;

  private constructor(directory: string, time: Date) {
    this.#directory = directory;
    this.#time = time;
  }

  /** Opens the files of a build in the state directory of its image, and deletes those of other builds. */
  static async open(stateDirectory: string, { uuid, endTime = 0 }: ZuulBuild): Promise<KeptFiles> {
    const own = safeName(uuid);
    for (const name of await readdir(stateDirectory)) {
      if (name !== own) await rm(join(stateDirectory, name), { recursive: true, force: true });
    }
    const directory = join(stateDirectory, own);
    await makeStateDirectory(directory);
    return new KeptFiles(directory, new Date(endTime));
  }

  /** Directory of the partial download of an artifact. */
  partial(artifact: ImageArtifact): string {
    return `${this.#path(artifact)}.partial`;
  }

  /** Returns the complete files of some artifacts. */
  async files(artifacts: readonly ImageArtifact[]): Promise<readonly KeptFile[]> {
    const files = await Promise.all(
      artifacts.map(async (artifact) => {
        const path = this.#path(artifact);
        const state = await unlessMissing(stat(path));
        return state?.mtimeMs === this.#time.getTime() ? [keptFile(artifact, path, state)] : [];
      }),
    );
    return files.flat();
  }

  /** Takes over the complete file of an artifact. It survives a power failure once this resolves. */
  async keep(artifact: ImageArtifact, file: string, sha256: string): Promise<KeptFile> {
    const path = this.#path(artifact);
    await utimes(file, this.#time, this.#time);
    await syncToDisk(file);
    await rename(file, path);
    await rm(this.partial(artifact), { recursive: true, force: true });
    return { ...keptFile(artifact, path, await stat(path)), sha256 };
  }

  /** Deletes all files. */
  async clear(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Returns the path of an artifact. The signature in the query is not part of the artifact's identity. */
  #path({ format, url }: ImageArtifact): string {
    const name = createHash('sha256').update(nameOf(url)).digest('hex');
    return join(this.#directory, imageFileName(name, format));
  }
}

function keptFile({ format }: ImageArtifact, path: string, { blocks }: Stats): KeptFile {
  return { format, path, usage: blocks * STAT_BLOCK };
}
