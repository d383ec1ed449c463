import { readFile, rm, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { CommandError } from './command-error.ts';

/** A file that holds the id of this process as long as it runs. */
export interface PidFile {
  remove(): Promise<void>;
}

/**
 * Writes the pid file. One that a dead process left is taken over.
 *
 * @throws CommandError if the process it names is alive, or the file cannot be written.
 */
export async function writePidFile(path: string): Promise<PidFile> {
  const owner = await readPid(path);
  if (owner !== undefined && owner !== process.pid && (await isOneOfUs(owner))) {
    throw new CommandError(
      `nodepool-builder runs already, as process ${owner} (${path}); stop it first, or use another -p`,
    );
  }
  try {
    await writeFile(path, `${process.pid}\n`);
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
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
