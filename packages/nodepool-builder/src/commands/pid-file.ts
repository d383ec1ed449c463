import { open, readFile, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError } from './command-error.ts';

/** A file with the id of this process, for as long as it runs. */
export interface PidFile {
  remove(): Promise<void>;
}

/** Default time limit for another process to end, in milliseconds: as long as the Python builder waits for its lock. */
const TIMEOUT = 10_000;

/** Mode of the file, independent of the umask. */
const MODE = 0o644;

/** Pause between two reads of the file, in milliseconds. */
const INTERVAL = 100;

/**
 * Writes the pid file. If another process wrote it and still runs, waits for that process: it may be about to end.
 *
 * @param timeout of the wait, in milliseconds
 * @throws CommandError if the other process does not end, or the file cannot be written.
 */
export async function writePidFile(path: string, timeout: number = TIMEOUT): Promise<PidFile> {
  const deadline = performance.now() + timeout;
  for (let owner = await readOwner(path); owner !== undefined; owner = await readOwner(path)) {
    if (performance.now() >= deadline) {
      throw new CommandError(
        `nodepool-builder is already running as process ${owner} (${path}); stop it first, or use another -p`,
      );
    }
    await delay(INTERVAL);
  }
  try {
    await write(path);
  } catch (error) {
    throw new CommandError(
      `the pid file cannot be written: ${(error as Error).message}; make its directory, or use another -p`,
      {
        cause: error,
      },
    );
  }
  return {
    remove: async () => {
      if ((await readPid(path)) === process.pid) await rm(path, { force: true });
    },
  };
}

/** Sets the mode of an existing file, too: init scripts trust the file, so only its owner may write it. */
async function write(path: string): Promise<void> {
  const file = await open(path, 'w', MODE);
  try {
    await file.chmod(MODE);
    await file.writeFile(`${process.pid}\n`);
  } finally {
    await file.close();
  }
}

/** Id of the other nodepool-builder that the file names, if it is alive. */
async function readOwner(path: string): Promise<number | undefined> {
  const owner = await readPid(path);
  return owner !== undefined && owner !== process.pid && (await isNodepoolBuilder(owner)) ? owner : undefined;
}

async function readPid(path: string): Promise<number | undefined> {
  try {
    const pid = Number.parseInt(await readFile(path, 'utf8'), 10);
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whether the process is alive and runs this program: after a reboot, another process may have the id. */
async function isNodepoolBuilder(pid: number): Promise<boolean> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).includes(basename(process.argv[1] ?? ''));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return false; // ESRCH: it ended between open and read
    throw error;
  }
}
