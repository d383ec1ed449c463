import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurably } from '@nodepool-builder/image-builder/module-kit';

/** Canonical text of a UUID. */
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * What tells the instances of the builder of an `images-dir` from those of others in the same cloud. It is drawn once,
 * and stays as long as the directory does.
 *
 * @param directory `images-dir`; `.nodepool-builder` is there
 */
export async function builderIdentity(directory: string): Promise<string> {
  const path = join(directory, '.nodepool-builder/builder-id');
  const known = await readFile(path, 'utf8').then(
    (text) => text.trim(),
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    },
  );
  if (UUID.test(known)) return known;
  const drawn = randomUUID();
  await writeDurably(path, `${drawn}\n`);
  return drawn;
}
