import { constants } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { errnoOf, openOwnFile, unlessMissing } from '@nodepool-builder/image-builder/internal';
import { CommandError, failing } from '../terms/command-error.ts';

/** Mode of the file, independent of the umask. */
const MODE = 0o644;

/** Maximum number of bytes that are read from the file. */
const MAX_LENGTH = 32;

/** Pause between two reads of the file, in milliseconds. */
const INTERVAL = 100;

/**
 * Writes the id of this process to a file. If another process wrote it and still runs, waits for that process, which
 * may be about to end.
 *
 * @param timeout timeout of the wait, in milliseconds. Default: as long as the Python builder waits for its lock
 * @returns a function that removes the file
 * @throws CommandError if the other process does not end, or the file cannot be written; ImageError if another user may
 * have created it
 */
export async function writePidFile(path: string, timeout = 10_000): Promise<() => Promise<void>> {
  const deadline = performance.now() + timeout;
  for (let owner = await readPid(path); await isOtherBuilder(owner); owner = await readPid(path)) {
    if (performance.now() >= deadline) {
      throw new CommandError(
        `nodepool-builder is already running as process ${owner} (${path}); stop it first, or use another -p`,
        'refused',
      );
    }
    await delay(INTERVAL);
  }
  await write(path).catch((error: unknown) => {
    if (error instanceof ImageError) throw error;
    failing('cannot write the pid file', 'create its directory, or use another -p')(error);
  });
  return async () => {
    if ((await readPid(path)) === process.pid) await rm(path, { force: true });
  };
}

/** Also sets the mode of an existing file. Init scripts trust the file, so only its owner may write it. */
async function write(path: string): Promise<void> {
  const file = await openOwnFile(path, constants.O_WRONLY | constants.O_CREAT, MODE);
  try {
    await file.chmod(MODE);
    await file.truncate();
    await file.writeFile(`${process.pid}\n`);
  } finally {
    await file.close();
  }
}

/** @returns 0 if the file is missing or contains no id */
async function readPid(path: string): Promise<number> {
  const file = await unlessMissing(openOwnFile(path, constants.O_RDONLY));
  if (file === undefined) return 0;
  try {
    const { buffer } = await file.read(Buffer.alloc(MAX_LENGTH));
    const pid = Number.parseInt(buffer.toString(), 10);
    return Number.isSafeInteger(pid) && pid > 0 ? pid : 0;
  } finally {
    await file.close();
  }
}

/** Returns whether another process is alive and runs this program. After a reboot, any program may have the id. */
async function isOtherBuilder(pid: number): Promise<boolean> {
  if (pid === 0 || pid === process.pid) return false;
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).includes(basename(process.argv[1] ?? ''));
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(errnoOf(error) ?? '')) return false; // ESRCH: it ended between open and read
    throw error;
  }
}
