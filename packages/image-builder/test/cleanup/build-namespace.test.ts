import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { mountTmpfs, temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { BuildNamespace } from '../../src/cleanup/build-namespace.ts';
import { loopDevices, loopsBelow } from '../../src/cleanup/loop-devices.ts';
import { runCommand } from '../../src/process/command.ts';
import { Staging } from '../../src/repository/staging.ts';

async function openNamespace(t: TestContext): Promise<BuildNamespace> {
  const namespace = await BuildNamespace.open(() => {});
  if (typeof namespace === 'string') assert.fail(namespace);
  t.after(() => namespace.close());
  return namespace;
}

test('a build’s command sees earlier commands’ mounts, and the host’s processes do not', async (t) => {
  const cwd = await temporaryDirectory(t);
  const namespace = await openNamespace(t);
  const wrap: BuildNamespace['enter'] = (...args) => namespace.enter(...args);
  await runCommand('sh', ['-c', 'mkdir m && mount -t tmpfs tmpfs m && echo content > m/file'], { cwd, wrap });
  const lines: string[] = [];
  await runCommand('sh', ['-c', 'pwd; cat m/file; exit 3'], {
    cwd,
    wrap,
    onLine: (line) => void lines.push(line),
  });
  assert.deepEqual(lines, [cwd, 'content']);
  assert.equal(spawnSync('mountpoint', ['-q', join(cwd, 'm')]).status, 32);
});

test('mounts and unmounts on the host during a build appear in the build', async (t) => {
  const shared = await mountTmpfs(t, 'size=1m');
  execFileSync('mount', ['--make-shared', shared]); // as systemd does with all mounts of a host
  const [cwd, host] = [await temporaryDirectory(t), join(shared, 'host')];
  await mkdir(host);
  const namespace = await openNamespace(t);
  const isMounted = async (): Promise<boolean> => {
    const { exitCode } = await runCommand('mountpoint', ['-q', host], {
      cwd,
      wrap: (...args) => namespace.enter(...args),
    });
    return exitCode === 0;
  };
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', host]);
  assert.equal(await isMounted(), true);
  execFileSync('umount', [host]);
  assert.equal(await isMounted(), false);
});

test('a command’s exit status, signal and SIGTERM are the same as without a namespace', async (t) => {
  const cwd = await temporaryDirectory(t);
  const namespace = await openNamespace(t);
  const run = (script: string, signal?: AbortSignal, onLine = (_: string): void => {}) =>
    runCommand('sh', ['-c', script], {
      cwd,
      wrap: (...args) => namespace.enter(...args),
      onLine,
      ...(signal && { signal }),
    });
  assert.equal((await run('exit 127')).exitCode, 127);
  assert.equal((await run('kill -TERM $$')).signal, 'SIGTERM');
  const abort = new AbortController();
  const lines: string[] = [];
  const trap = run('trap "echo cleaned; exit" TERM; echo ready; sleep 600 & wait', abort.signal, (line) => {
    lines.push(line);
    if (line === 'ready') abort.abort();
  });
  await assert.rejects(trap, { name: 'AbortError' });
  assert.deepEqual(lines, ['ready', 'cleaned']);
});

test('a loop device with a file on one of the namespace’s mounts is freed', async (t) => {
  const images = await mountTmpfs(t, 'size=64m');
  const staging = await Staging.create(images);
  const namespace = await staging.namespace(assert.fail);
  assert.ok(namespace !== undefined);
  const [one, other] = [`mounted-${process.pid}`, `plain-${process.pid}`];
  await runCommand(
    'sh',
    [
      '-c',
      `mkdir m && mount -t tmpfs tmpfs m && truncate -s 8M m/${one} ${other} && losetup -f m/${one} && losetup -f ${other}`,
    ],
    { cwd: staging.directory, wrap: (...args) => namespace.enter(...args) },
  );
  const loops = loopsBelow(await loopDevices(), [staging.directory]);
  assert.equal(loops.length, 2);
  await staging.clear();
  // Another test may reuse a freed device at once, so compare the names of the files.
  const files = (await loopDevices()).map(({ backingFile }) => basename(backingFile));
  assert.deepEqual(
    loops.filter(({ backingFile }) => files.includes(basename(backingFile))),
    [],
  );
});

test('a loop device whose mount point vanished with the namespace is freed by the next process', async (t) => {
  const images = await mountTmpfs(t, 'size=64m');
  await mkdir(join(images, 'staging'));
  const staging = await Staging.create(join(images, 'staging'));
  const namespace = await openNamespace(t);
  await runCommand('sh', ['-c', 'truncate -s 8M a && losetup -f a'], {
    cwd: staging.directory,
    wrap: (...args) => namespace.enter(...args),
  });
  await namespace.close();
  assert.equal(loopsBelow(await loopDevices(), [staging.directory]).length, 1);
  await new Staging(staging.directory).clear();
  assert.deepEqual(loopsBelow(await loopDevices(), [staging.directory]), []);
});
