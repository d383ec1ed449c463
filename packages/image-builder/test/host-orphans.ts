import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { loopDevices, loopsBelow } from '../src/cleanup/loop-devices.ts';
import { mountsBelow, parseMounts } from '../src/cleanup/mounts.ts';
import { findProcesses } from '../src/cleanup/processes.ts';

/** Finds mounts, loop devices and processes of builds below `directory` on this host. */
export async function orphansBelow(
  directory: string,
): Promise<{ mounts: readonly string[]; loops: readonly string[]; processes: readonly number[] }> {
  return {
    mounts: await mountsBelow([directory]),
    loops: loopsBelow(await loopDevices(), [directory]).map(({ name }) => name),
    processes: findProcesses({ roots: [directory], groups: [] }),
  };
}

/**
 * Returns the mount points below `directory` as the builds' processes see them, in their own mount namespace.
 *
 * @param images `images-dir` of the builds
 */
export async function mountsOfBuilds(images: string, directory: string = images): Promise<string[]> {
  const { processes } = await orphansBelow(images);
  const tables = await Promise.all(
    processes.map((pid) => readFile(`/proc/${pid}/mountinfo`, 'latin1').catch(() => '')),
  );
  const mountPoints = tables.flatMap(parseMounts).map(({ mountPoint }) => mountPoint);
  return mountPoints.filter((path) => path.startsWith(directory));
}

/** Checks that a build left nothing, and that the host's /dev, which was mounted in it, is intact. */
export async function assertNoOrphans(directory: string): Promise<void> {
  assert.deepEqual(await orphansBelow(directory), { mounts: [], loops: [], processes: [] });
  assert.ok(existsSync('/dev/null'), 'the host’s /dev is damaged');
}
