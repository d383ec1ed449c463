import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { environmentIn, QEMU, startError } from '@nodepool-builder/image-builder/internal';
import { poll } from '@nodepool-builder/image-builder/plugin';
import { executeQmp } from './execute-qmp.ts';
import { INSTANCE_FILES, type InstanceDirectory } from './instance-directory.ts';

/** Maximum seconds between two checks of whether QEMU listens. */
const INTERVAL = 0.02;

/** Number of QEMU's output lines in an error. */
const LAST_LINES = 5;

/**
 * Starts a QEMU that outlives this process, and waits until its machine runs.
 *
 * @throws ImageError `launch-failed`, `command-not-found`
 * @throws the signal's reason; QEMU may then be running
 */
export async function startMachine(
  directory: InstanceDirectory,
  args: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const log = await open(directory.file(INSTANCE_FILES.log), 'a', 0o600);
  let failure: string | undefined;
  try {
    const child = spawn(QEMU, args, {
      cwd: directory.path, // identifies the process
      detached: true,
      env: environmentIn(directory.path),
      stdio: ['ignore', log.fd, log.fd],
    });
    child.unref();
    child.once('exit', (code, by) => {
      failure = `it ended with ${by ?? `exit code ${code}`}`;
    });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw startError(QEMU, directory.path, { code, cause: error }, 'install it (Debian: qemu-system-x86)');
  } finally {
    await log.close();
  }
  const check = async (): Promise<true | undefined> => {
    if (await responds(directory)) return true;
    if (failure !== undefined) throw await launchFailed(directory, failure);
    return undefined;
  };
  await poll(check, { interval: INTERVAL, signal });
}

/** Returns whether QEMU replies. It listens before it has created its devices, but replies only afterwards. */
async function responds(directory: InstanceDirectory): Promise<boolean> {
  try {
    return (await executeQmp(directory.file(INSTANCE_FILES.monitor), 'query-status')) !== undefined;
  } catch (error) {
    if (error instanceof ImageError) return false; // QEMU ended before it replied
    throw error;
  }
}

async function launchFailed(directory: InstanceDirectory, failure: string): Promise<ImageError> {
  const lines = (await directory.tail(INSTANCE_FILES.log)).trim().split('\n').slice(-LAST_LINES);
  const said = lines.join(' / ') || 'nothing';
  return new ImageError(
    'launch-failed',
    `QEMU did not run the machine of build ${directory.record.buildId}: ${failure}, saying: ${said}; correct what it names`,
  );
}
