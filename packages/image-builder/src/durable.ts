import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { STATE_FILE } from './modes.ts';

/** Flushes a file's content or a directory's entries to the disk, so that they survive a power failure. */
export async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Suffix of the file that {@link writeDurably} writes before it renames it. A crash may leave that file. */
export const UNFINISHED = '.new';

/**
 * Writes a file atomically, so that a crash leaves the old or the new content. Default mode: the mode of state files.
 */
export async function writeDurably(
  path: string,
  content: string | Uint8Array | AsyncIterable<string>,
  mode: number = STATE_FILE,
): Promise<void> {
  const temporary = path + UNFINISHED;
  const handle = await open(temporary, 'w', mode);
  try {
    await handle.chmod(mode); // independent of the umask, and of a file that a crash left
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, path);
  await syncToDisk(dirname(path));
}
