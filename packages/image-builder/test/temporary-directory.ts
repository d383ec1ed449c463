import { execFileSync } from 'node:child_process';
import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { mountsBelow, unmount } from '../src/cleanup/mounts.ts';
import { removeTree } from '../src/cleanup/privileged.ts';

/**
 * A directory that goes away with the test. Its path has no symbolic links. What a failed test left mounted in
 * it, the host's /dev perhaps, goes first, and nothing on another file system is removed.
 *
 * @param release gives free what uses the directory; called before.
 */
export async function temporaryDirectory(
  t: TestContext,
  release: () => Promise<void> = () => Promise.resolve(),
): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'image-builder-')));
  t.after(async () => {
    await release();
    for (const mountPoint of await mountsBelow([directory])) await unmount(mountPoint, true);
    await removeTree(directory);
  });
  return directory;
}

/** A temporary directory that is a file system of its own: a small one (`size=4m`), or a read-only one (`ro`). */
export async function mountTmpfs(
  t: TestContext,
  options: string,
  release?: () => Promise<void>,
): Promise<string> {
  const directory = await temporaryDirectory(t, release);
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory]);
  return directory;
}
