import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { copyKernel, hasFile } from '../quickstart/debian-image.ts';
import type { Session } from '../quickstart/session.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The Debian image that the quickstart built. */
const QUICKSTART_IMAGE = join(ROOT, 'quickstart-data/debian.qcow2');

/** Program that permits the login of a config drive's user. Images from an older quickstart do not contain it. */
const LOGIN = '/usr/local/sbin/config-drive-login';

/**
 * Copies the quickstart's image into a directory as `debian.raw`, next to its kernel and initial RAM disk. Runs the
 * quickstart first if its image is missing.
 *
 * @throws Error if the quickstart fails.
 */
export async function prepareBaseImage(session: Session, directory: string): Promise<string> {
  const image = join(directory, 'debian.raw');
  const unpack = async (): Promise<boolean> => {
    if (!existsSync(QUICKSTART_IMAGE)) return false;
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true });
    await promisify(execFile)('qemu-img', ['convert', '-O', 'raw', QUICKSTART_IMAGE, image]);
    return await hasFile(image, LOGIN);
  };
  if (!(await unpack())) {
    session.step('Making the Debian image that is to be customised: this is the quickstart');
    await session.handOver(async () => await runQuickstart(session.signal));
    if (!(await unpack())) throw new Error(`${QUICKSTART_IMAGE} does not permit a login`);
  }
  await copyKernel(image, directory);
  return image;
}

async function runQuickstart(signal: AbortSignal): Promise<void> {
  // Runs in this process's session, so that Ctrl-C reaches it; it cleans up by itself.
  const child = spawn(process.execPath, [join(ROOT, 'scripts/quickstart.ts')], { stdio: 'inherit' });
  const stop = (): boolean => child.kill('SIGTERM');
  signal.addEventListener('abort', stop);
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    signal.throwIfAborted();
    if (code !== 0) throw new Error('the quickstart failed');
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
