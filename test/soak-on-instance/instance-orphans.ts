import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Orphans of builds on local QEMU machines. */
export interface InstanceOrphans {
  /** Ids of QEMU's processes. */
  readonly processes: readonly string[];
  /** Directories of machines, each with its overlay. */
  readonly machines: readonly string[];
  /** Instance records and keys. */
  readonly ledger: readonly string[];
  /** Partial images. */
  readonly staging: readonly string[];
}

/**
 * Finds orphans below `images`.
 *
 * @param directory directory of the kernel, by which the processes are found
 */
export async function instanceOrphans(directory: string, images: string): Promise<InstanceOrphans> {
  const list = (name: string): Promise<string[]> =>
    unlessGone(readdir(join(images, '.nodepool-builder', name)), []);
  return {
    processes: await qemuProcesses(directory),
    machines: await list('qemu-machines'),
    ledger: await list('instances'),
    staging: await list('staging'),
  };
}

/** Reads the phase in a build's record; undefined without one. */
export async function phaseOf(images: string, imageId: string): Promise<string | undefined> {
  const path = join(images, '.nodepool-builder/instances', `${imageId}.json`);
  const text = await unlessGone(readFile(path, 'utf8'), undefined);
  return text === undefined ? undefined : (JSON.parse(text) as { phase: string }).phase;
}

export function isEmpty(orphans: InstanceOrphans): boolean {
  return Object.values(orphans).every((found) => found.length === 0);
}

async function qemuProcesses(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const line = await unlessGone(readFile(join('/proc', pid, 'cmdline'), 'utf8'), '');
    if (line.startsWith('qemu-system') && line.includes(directory)) found.push(pid);
  }
  return found;
}

/** A process may end, or a file may disappear, while it is read. */
async function unlessGone<T, U>(work: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await work;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return otherwise;
    throw error;
  }
}
