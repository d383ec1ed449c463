import { execFile } from 'node:child_process';
import { mkdir, open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Name of the file that fills the disk. */
const FILLER = 'filler';

/** A small ext4 file system on a loop device, which can be filled and frozen. Requires root. */
export class SmallDisk {
  /** Mount point. Its content is in `content` below, so that `lost+found` is not in the way. */
  readonly mountPoint: string;
  readonly directory: string;
  readonly #image: string;

  private constructor(path: string) {
    this.mountPoint = path;
    this.directory = join(path, 'content');
    this.#image = `${path}.ext4`;
  }

  /** @param megabytes size of the file system in megabytes */
  static async create(path: string, megabytes: number): Promise<SmallDisk> {
    const disk = new SmallDisk(path);
    await run('truncate', [`--size=${megabytes}M`, disk.#image]);
    await run('mke2fs', ['-q', '-t', 'ext4', '-m', '0', disk.#image]);
    await mkdir(path);
    await run('mount', ['-o', 'loop', disk.#image, path]);
    await mkdir(disk.directory);
    return disk;
  }

  /** Fills the disk. */
  async fill(): Promise<void> {
    const { bavail, bsize } = await statfs(this.mountPoint);
    const file = await open(join(this.mountPoint, FILLER), 'w');
    await file.close();
    // Concurrent writes make fallocate fail after it has taken part of the space, which is full enough.
    await run('fallocate', [
      '--length',
      String(Math.max(bavail * bsize, 1)),
      join(this.mountPoint, FILLER),
    ]).catch(() => undefined);
  }

  async empty(): Promise<void> {
    await rm(join(this.mountPoint, FILLER), { force: true });
  }

  /** Freezes the file system, so that every write waits. */
  async freeze(): Promise<void> {
    await run('fsfreeze', ['--freeze', this.mountPoint]);
  }

  async thaw(): Promise<void> {
    await run('fsfreeze', ['--unfreeze', this.mountPoint]);
  }

  /** Unmounts it, even if it is full or frozen. */
  async remove(): Promise<void> {
    await this.thaw().catch(() => undefined);
    await run('umount', [this.mountPoint]);
    await rm(this.#image, { force: true });
  }
}
