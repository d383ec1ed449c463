import { setTimeout as delay } from 'node:timers/promises';
import { ImageError } from '../errors.ts';
import { detach, isAttached, type LoopDevice, loopDevices, loopsBelow } from './loop-devices.ts';
import { mountsBelow, unmount } from './mounts.ts';
import { endProcesses, findProcesses, type ProcessTraits } from './processes.ts';

/** Timeout for the kernel to free a loop device after its last use, in milliseconds. */
const RELEASE_TIMEOUT = 2_000;

/**
 * Ends the processes of a build, and undoes its mounts and loop devices. It removes no file, because the host's own
 * `/dev` may be mounted below.
 *
 * @param known loop devices of the build that were found earlier
 * @throws ImageError `cleanup-failed` if anything remains
 */
export async function undo(traits: ProcessTraits, known: readonly LoopDevice[] = []): Promise<void> {
  const failures: unknown[] = [];
  if (!(await endProcesses(traits))) {
    throw notCleared(traits, [`processes ${findProcesses(traits).join(', ')} do not end`]);
  }
  // This precedes unmounting, after which a loop device with a backing file on a mount is not recognised.
  const loops = [...known, ...loopsBelow(await loopDevices(), traits.roots)];
  // Loop devices have files on mounts, and mounts are on loop devices, so several rounds are needed. The last one is
  // lazy.
  for (const lazily of [false, false, true]) {
    for (const mountPoint of await mountsBelow(traits.roots)) {
      await unmount(mountPoint, lazily).catch((error: unknown) => failures.push(error));
    }
    for (const loop of loops) await detach(loop).catch((error: unknown) => failures.push(error));
    if (await isUndone(traits.roots, loops)) return;
  }
  for (const until = performance.now() + RELEASE_TIMEOUT; performance.now() < until; await delay(20)) {
    if (await isUndone(traits.roots, loops)) return;
  }
  const mounts = await mountsBelow(traits.roots);
  throw notCleared(traits, [...mounts, ...loops.map(({ name }) => name)], failures.at(-1));
}

async function isUndone(roots: readonly string[], loops: readonly LoopDevice[]): Promise<boolean> {
  if ((await mountsBelow(roots)).length > 0) return false;
  return (await Promise.all(loops.map(isAttached))).every((attached) => !attached);
}

function notCleared({ roots }: ProcessTraits, left: readonly string[], cause?: unknown): ImageError {
  const reason = cause instanceof Error ? ` (${cause.message})` : '';
  return new ImageError(
    'cleanup-failed',
    `cleanup after a build failed below ${roots.join(', ')}: ${left.join(', ')} remain${reason}; ` +
      'no file was removed, undo them by hand',
    { cause },
  );
}
