// Only in test:all: it boots a machine for each end of a build.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type BuilderProcess, builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { createMiniLinuxSite } from '../fixtures/mini-linux-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

/** A build in its own process. */
function startBuild(t: TestContext, ...args: readonly string[]): BuilderProcess {
  const build = spawnDaemon(builderCommand('build', ...args, '--verbose'));
  undoAfter(t, () => (build.child.exitCode === null ? build.end('SIGKILL') : undefined));
  return build;
}

test('a machine under QEMU makes an image, and ends when the build ends for any reason', async (t) => {
  const site = await createMiniLinuxSite(1, {
    node: {
      'on-instance': {
        steps: ['echo made > /etc/made'],
      },
    },
    waits: { 'on-instance': { steps: ['echo "it waits"; sleep 3600'], 'keep-on-failure': 3600 } },
    fails: { 'on-instance': { steps: ['exit 3'], 'keep-on-failure': 3600 } },
  });
  undoAfter(t, () => site.remove());
  const output = join(site.directory, 'output');
  const args = ['-c', site.config, '--output', output];
  const machines = async (): Promise<number> => {
    const links = (await readdir('/proc')).map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => ''));
    return (await Promise.all(links)).filter((path) => path.includes(`${output}/`)).length;
  };

  const built = await runCommand('build', 'node', ...args, '--image-id', 'node-1');
  assert.deepEqual([built.code, built.stdout], [0, `${join(output, 'node-1.raw')}\n`], built.stderr);
  const request = ['-R', 'cat /etc/made', join(output, 'node-1.raw')];
  const stdio = ['ignore', 'pipe', 'ignore'] as const;
  assert.equal(execFileSync('debugfs', request, { encoding: 'utf8', stdio: [...stdio] }), 'made\n');

  const failed = await runCommand('build', 'fails', ...args, '--image-id', 'fails-1');
  assert.equal(failed.code, 1);
  assert.doesNotMatch(failed.stderr, /kept/);

  const stopped = startBuild(t, 'waits', ...args, '--image-id', 'stopped');
  await stopped.logged(/it waits/);
  assert.equal(await machines(), 1);
  assert.equal(await stopped.end('SIGINT'), 6);
  assert.equal(await machines(), 0);

  const killed = startBuild(t, 'waits', ...args, '--image-id', 'killed');
  await killed.logged(/it waits/);
  await killed.end('SIGKILL');
  assert.equal(await machines(), 1);
  const next = await runCommand('build', 'node', ...args, '--image-id', 'node-2', '--format', 'tgz');
  assert.match(next.stderr, /is requested as tgz, but its builder makes/);
  assert.equal(await machines(), 0);
  const hidden = (await readdir(output)).filter((name) => name.startsWith('.'));
  assert.deepEqual(hidden, []);
});
