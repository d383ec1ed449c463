import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ImageError, type LaunchRequest, type SettingsOf } from '@nodepool-builder/image-builder';
import {
  endProcesses,
  objectOf,
  RecordType,
  TEXT,
  unlessMissing,
} from '@nodepool-builder/image-builder/internal';

/** Files of an instance, in the working directory of QEMU. */
export const INSTANCE_FILES = {
  record: 'instance.json',
  disk: 'disk.qcow2',
  configDrive: 'config-drive',
  console: 'console.log',
  monitor: 'qmp.sock',
  log: 'qemu.log',
  /** Exists once the system has powered off. */
  poweredOff: 'powered-off',
} as const;

/** Label by which the file system of a config drive is found. */
export const CONFIG_DRIVE_LABEL = 'config-2';

const SCHEMA = objectOf({
  buildId: TEXT,
  launchedAt: { ...TEXT, format: 'date-time' },
  /** Absolute path of the base image. */
  image: TEXT,
});

/** Record of the launch of an instance, for later processes. */
export type QemuLaunchRecord = SettingsOf<typeof SCHEMA>;

const RECORD = new RecordType(SCHEMA);

/** Prefix of directories that are being created or removed. They are not instances. */
const HIDDEN = '.';

/** Bytes read from the end of a file. They cover a whole boot, which prints host keys early. */
const TAIL = 256 * 1024;

/** Files of one instance. Its QEMU is identified by this working directory. */
export class InstanceDirectory {
  readonly id: string;
  readonly path: string;
  readonly record: QemuLaunchRecord;

  constructor(parent: string, id: string, record: QemuLaunchRecord) {
    this.id = id;
    this.path = join(parent, id);
    this.record = record;
  }

  /** Creates a directory with the files of `fill`, completely or not at all. */
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

  /** Lists the directories below `parent`. */
  static async list(parent: string): Promise<InstanceDirectory[]> {
    const found: InstanceDirectory[] = [];
    for (const id of (await unlessMissing(readdir(parent))) ?? []) {
      if (id.startsWith(HIDDEN)) continue;
      // A directory may be removed in the meantime.
      const record = await RECORD.read(join(parent, id, INSTANCE_FILES.record));
      if (record !== undefined) found.push(new InstanceDirectory(parent, id, record));
    }
    return found;
  }

  /** Removes directories whose creation or removal was interrupted by SIGKILL. */
  static async removeHidden(parent: string): Promise<void> {
    for (const name of (await unlessMissing(readdir(parent))) ?? []) {
      if (name.startsWith(HIDDEN)) await rm(join(parent, name), { recursive: true, force: true });
    }
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** Reads the end of a file; returns an empty text if it does not exist. */
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

  /** Records that the system powered off, so that its disk is complete. */
  async setPoweredOff(): Promise<void> {
    await unlessMissing(writeFile(this.file(INSTANCE_FILES.poweredOff), '', { mode: 0o600 }));
  }

  async isPoweredOff(): Promise<boolean> {
    return (await unlessMissing(stat(this.file(INSTANCE_FILES.poweredOff)))) !== undefined;
  }

  /**
   * Ends QEMU.
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

/**
 * Writes the files of an OpenStack config drive, for cloud-init, cloudbase-init and glean.
 *
 * @param directory root of the file system
 * @param instanceId shows these programs that this is a new machine
 */
export async function writeConfigDrive(
  directory: string,
  instanceId: string,
  { buildId, publicKey, userData }: Pick<LaunchRequest, 'buildId' | 'publicKey' | 'userData'>,
): Promise<void> {
  const latest = join(directory, 'openstack', 'latest');
  const metadata = { uuid: instanceId, name: buildId, public_keys: { 'nodepool-builder': publicKey.trim() } };
  await mkdir(latest, { recursive: true });
  await writeFile(join(latest, 'meta_data.json'), JSON.stringify(metadata));
  if (userData !== undefined) await writeFile(join(latest, 'user_data'), userData);
}
