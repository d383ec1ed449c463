import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endProcesses, ImageError, unlessMissing } from '@nodepool-builder/image-builder';
import { RecordType } from '@nodepool-builder/image-builder/module-kit';
import { INSTANCE_FILES } from './instance-arguments.ts';

/** Record of the launch of an instance, for later processes. */
export interface QemuLaunchRecord {
  readonly buildId: string;
  /** ISO 8601. */
  readonly launchedAt: string;
  /** Absolute path of the base image. */
  readonly image: string;
}

const RECORD = new RecordType({
  type: 'object',
  required: ['buildId', 'launchedAt', 'image'],
  properties: {
    buildId: { type: 'string' },
    launchedAt: { type: 'string', format: 'time' },
    image: { type: 'string' },
  },
});

/** What is being made or removed: files alone, and no instance. */
const HIDDEN = '.';

/** How much of the end of a file is read, in bytes: a whole boot, among whose first lines there may be host keys. */
const TAIL = 256 * 1024;

/** All that there is of one instance, and what its QEMU is known by: QEMU works in this directory. */
export class InstanceDirectory {
  readonly id: string;
  readonly path: string;
  readonly record: QemuLaunchRecord;

  constructor(parent: string, id: string, record: QemuLaunchRecord) {
    this.id = id;
    this.path = join(parent, id);
    this.record = record;
  }

  /** Makes one, with what `fill` puts there: whole or not at all. */
  static async create(
    parent: string,
    record: QemuLaunchRecord,
    fill: (directory: string, id: string) => Promise<void>,
  ): Promise<InstanceDirectory> {
    const made = new InstanceDirectory(parent, randomUUID(), record);
    const hidden = join(parent, HIDDEN + made.id);
    try {
      await mkdir(hidden, { mode: 0o700 });
      await fill(hidden, made.id);
      await RECORD.write(join(hidden, INSTANCE_FILES.record), record);
      await rename(hidden, made.path);
    } catch (error) {
      await rm(hidden, { recursive: true, force: true });
      throw error;
    }
    return made;
  }

  /** Those below `parent`. */
  static async list(parent: string): Promise<InstanceDirectory[]> {
    const found: InstanceDirectory[] = [];
    for (const id of (await unlessMissing(readdir(parent))) ?? []) {
      if (id.startsWith(HIDDEN)) continue;
      // One that is being removed may go at any moment.
      const record = await RECORD.read(join(parent, id, INSTANCE_FILES.record));
      if (record !== undefined) found.push(new InstanceDirectory(parent, id, record));
    }
    return found;
  }

  /** Removes what a process left here that was killed while it made or removed a directory. */
  static async removeHidden(parent: string): Promise<void> {
    for (const name of (await unlessMissing(readdir(parent))) ?? []) {
      if (name.startsWith(HIDDEN)) await rm(join(parent, name), { recursive: true, force: true });
    }
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** The end of a file; empty if there is none. */
  async tail(name: string): Promise<string> {
    const file = await unlessMissing(open(this.file(name), 'r'));
    if (file === undefined) return '';
    try {
      const { size } = await file.stat();
      const length = Math.min(size, TAIL);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await file.close();
    }
  }

  /** Remembers that the system powered off: that its disk is whole. */
  async setPoweredOff(): Promise<void> {
    await unlessMissing(writeFile(this.file(INSTANCE_FILES.poweredOff), '', { mode: 0o600 }));
  }

  async isPoweredOff(): Promise<boolean> {
    return (await unlessMissing(stat(this.file(INSTANCE_FILES.poweredOff)))) !== undefined;
  }

  /**
   * Ends the QEMU.
   *
   * @throws ImageError `cleanup-failed`
   */
  async endMachine(): Promise<void> {
    if (await endProcesses({ roots: [this.path], groups: [] })) return;
    throw new ImageError(
      'cleanup-failed',
      `the processes of instance ${this.id} in ${this.path} do not end; end them by hand`,
    );
  }

  /** Removes all files. */
  async remove(): Promise<void> {
    const hidden = join(this.path, '..', HIDDEN + this.id);
    await unlessMissing(rename(this.path, hidden));
    await rm(hidden, { recursive: true, force: true });
  }
}
