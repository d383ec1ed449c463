import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { errnoOf, unlessMissing } from '../system-error.ts';
import { isPathInside } from './mounts.ts';
import { runPrivileged } from './privileged.ts';

const BLOCK_DEVICES = '/sys/block';
const MAPPINGS = '/dev/mapper';

export interface LoopDevice {
  /** Name of the device, such as `loop0`. */
  readonly name: string;
  readonly backingFile: string;
}

export async function loopDevices(): Promise<LoopDevice[]> {
  const names = (await readdir(BLOCK_DEVICES)).filter((name) => name.startsWith('loop'));
  const devices = await Promise.all(
    names.map(async (name) => ({ name, backingFile: await readBackingFile(name) })),
  );
  return devices.filter((device): device is LoopDevice => device.backingFile !== undefined);
}

async function readBackingFile(name: string): Promise<string | undefined> {
  const text = await unlessDetached(readFile(join(BLOCK_DEVICES, name, 'loop', 'backing_file'), 'utf8'));
  return text?.replace(/\n$/, '').replace(/ \(deleted\)$/, '');
}

/** Ignores ENODEV, which is returned while another process detaches the device. */
async function unlessDetached<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await unlessMissing(read);
  } catch (error) {
    if (errnoOf(error) === 'ENODEV') return undefined;
    throw error;
  }
}

/**
 * Finds loop devices with a backing file at or below `roots`, whose last path components are unique. Devices for
 * partitions precede the device that contains them.
 */
export function loopsBelow(devices: readonly LoopDevice[], roots: readonly string[]): LoopDevice[] {
  const ends = roots.flatMap(endsOf);
  const found = devices.filter(({ backingFile }) => isPathInside(backingFile, ends));
  // The list grows during the loop, so that nested partitions are found.
  for (const { name } of found)
    found.push(...devices.filter(({ backingFile }) => backingFile === `/dev/${name}`));
  return found.toReversed();
}

/** Detaches a loop device and removes the partition mappings on it. */
export async function detach(loop: LoopDevice): Promise<void> {
  if (!(await isAttached(loop))) return;
  for (const mapping of await mappingsOn(loop.name)) await runPrivileged('dmsetup', ['remove', mapping]);
  await runPrivileged('losetup', ['--detach', `/dev/${loop.name}`]);
  await removeLinksTo(loop.name);
}

/** Returns whether the device still has its backing file. */
export async function isAttached(loop: LoopDevice): Promise<boolean> {
  const file = await readBackingFile(loop.name);
  return file !== undefined && loop.backingFile.endsWith(file);
}

/**
 * Returns the path and all its suffixes, each as a path. After the end of the mount namespace in which a loop device
 * was attached, the kernel reports the backing file without the mount point above it.
 */
function endsOf(root: string): string[] {
  const names = root.split('/').slice(1);
  return names.map((_, index) => `/${names.slice(index).join('/')}`);
}

/** Names of the device-mapper devices on top of a block device, topmost first. */
async function mappingsOn(device: string): Promise<string[]> {
  const holders = (await unlessDetached(readdir(join(BLOCK_DEVICES, device, 'holders')))) ?? [];
  const names: string[] = [];
  for (const holder of holders.filter((name) => name.startsWith('dm-'))) {
    const name = await unlessDetached(readFile(join(BLOCK_DEVICES, holder, 'dm', 'name'), 'utf8'));
    if (name !== undefined) names.push(...(await mappingsOn(holder)), name.trim());
  }
  return names;
}

/**
 * Removes the links to a device. Without a device mapper, links in its directory point to loop devices for partitions.
 */
async function removeLinksTo(device: string): Promise<void> {
  for (const name of (await unlessMissing(readdir(MAPPINGS))) ?? []) {
    const path = join(MAPPINGS, name);
    const target = await readlink(path).catch(() => undefined);
    if (target !== undefined && resolve(MAPPINGS, target) === `/dev/${basename(device)}`) await rm(path);
  }
}
