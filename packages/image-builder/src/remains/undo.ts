import { setTimeout as delay } from 'node:timers/promises';
import { ImageError } from '../errors.ts';
import { detach, isAttached, type LoopDevice, loopDevices, loopsBelow } from './loop-devices.ts';
import { mountsBelow, unmount } from './mounts.ts';
import { endProcesses, findProcesses, type ProcessTraits } from './processes.ts';

/** How long the kernel may take to free a loop device after the last use of it, in milliseconds. */
const PATIENCE = 2_000;

/**
 * Ends the processes of a build, and undoes its mounts and loop devices. Removes no file: among the mounts may
 * be one of the host's own `/dev`.
 *
 * @param known loop devices of the build that were seen before.
 * @throws ImageError `remains-not-cleared` if anything is left
 */
export async function undo(traits: ProcessTraits, known: readonly LoopDevice[] = []): Promise<void> {
  const failures: unknown[] = [];
  if (!(await endProcesses(traits))) {
    throw notCleared(traits, [`processes ${findProcesses(traits).join(', ')} do not end`]);
  }
  // Before any mount goes: a loop device whose file lay on one is not to be recognised afterwards.
  const loops = [...known, ...loopsBelow(await loopDevices(), traits.roots)];
  // Loop devices show files on mounts, and mounts are of loop devices: several rounds, the last one by force.
  for (const lazily of [false, false, true]) {
    for (const mountPoint of await mountsBelow(traits.roots)) {
      await unmount(mountPoint, lazily).catch((error: unknown) => failures.push(error));
    }
    for (const loop of loops) await detach(loop).catch((error: unknown) => failures.push(error));
    if (await isUndone(traits.roots, loops)) return;
  }
  for (const until = performance.now() + PATIENCE; performance.now() < until; await delay(20)) {
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
    'remains-not-cleared',
    `a build left what could not be undone below ${roots.join(', ')}: ${left.join(', ')}${reason}; ` +
      'nothing was removed, undo it by hand',
    { cause },
  );
}
