import { open, readFile, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError } from './command-error.ts';

/** A file that holds the id of this process as long as it runs. */
export interface PidFile {
  remove(): Promise<void>;
}

/** How long a predecessor may take to end, in milliseconds, as the Python builder waited for its lock. */
const PATIENCE = 10_000;

/** Mode of the file, independent of the umask. */
const MODE = 0o644;

/** Between two looks at it, in milliseconds. */
const INTERVAL = 100;

/**
 * Writes the pid file. One that a dead process left is taken over; of one that is alive the end is awaited, for it may
 * be about to stop.
 *
 * @param patience how long, in milliseconds
 * @throws CommandError if the process it names stays alive, or the file cannot be written.
 */
export async function writePidFile(path: string, patience: number = PATIENCE): Promise<PidFile> {
  const deadline = performance.now() + patience;
  for (let owner = await readOwner(path); owner !== undefined; owner = await readOwner(path)) {
    if (performance.now() >= deadline) {
      throw new CommandError(
        `nodepool-builder runs already, as process ${owner} (${path}); stop it first, or use another -p`,
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

/** Init scripts trust it, so that only its owner may write it: one of another program may have another mode. */
async function write(path: string): Promise<void> {
  const file = await open(path, 'w', MODE);
  try {
    await file.chmod(MODE);
    await file.writeFile(`${process.pid}\n`);
  } finally {
    await file.close();
  }
}

/** The other process of ours that the file names and that is alive. */
async function readOwner(path: string): Promise<number | undefined> {
  const owner = await readPid(path);
  return owner !== undefined && owner !== process.pid && (await isOneOfUs(owner)) ? owner : undefined;
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

/** Whether the process is alive and runs the same program: after a reboot the id may be anybody's. */
async function isOneOfUs(pid: number): Promise<boolean> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).includes(basename(process.argv[1] ?? ''));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return false; // ESRCH: it ended between the opening and the reading
    throw error;
  }
}
