import assert from 'node:assert/strict';
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { endProcesses, findProcesses, MARKER, recordOf } from '../../src/cleanup/processes.ts';

interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
}

/** Starts a shell, and waits until it has reported that it is ready. */
async function start(t: TestContext, script: string, options: SpawnOptions = {}): Promise<Child> {
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'inherit'], cwd: '/', ...options });
  assert.ok(child.pid !== undefined && child.stdout !== null);
  const exit = once(child, 'exit');
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exit;
  });
  await once(child.stdout, 'data');
  return { process: child, pid: child.pid };
}

const WAIT = 'echo ready; exec sleep 600';

test('a process whose working directory is below a build’s directories is found, and others are not', async (t) => {
  const [root, other] = [await temporaryDirectory(t), await temporaryDirectory(t)];
  const inside = await start(t, WAIT, { cwd: root });
  await start(t, WAIT, { cwd: other });
  assert.deepEqual(findProcesses({ roots: [root], groups: [] }), [inside.pid]);
});

test('a process whose environment names the build is found in any session', async (t) => {
  const root = await temporaryDirectory(t);
  const marked = await start(t, WAIT, { env: { ...process.env, [MARKER]: root }, detached: true });
  await start(t, WAIT, { env: { ...process.env, [MARKER]: `${root}-2` } });
  assert.deepEqual(findProcesses({ roots: [root], groups: [] }), [marked.pid]);
});

test('a recorded process group is found, including descendants that left it', async (t) => {
  const leader = await start(t, 'setsid sleep 600 & echo ready; wait', { detached: true });
  const record = recordOf(leader.pid);
  assert.ok(record);
  const found = findProcesses({ roots: [], groups: [record] });
  assert.equal(found.length, 2);
  assert.ok(await endProcesses({ roots: [], groups: [record] }));
});

test('a process group from another boot, or with another leader by now, is not found', async (t) => {
  const leader = await start(t, WAIT, { detached: true });
  const record = recordOf(leader.pid);
  assert.ok(record);
  for (const other of [
    { ...record, boot: 'another' },
    { ...record, started: '1' },
  ]) {
    assert.deepEqual(findProcesses({ roots: [], groups: [other] }), []);
  }
});

test('processes that a build left get SIGTERM', async (t) => {
  const root = await temporaryDirectory(t);
  const child = await start(t, 'trap "exit 7" TERM; echo ready; while :; do sleep 0.01; done', { cwd: root });
  const exit = once(child.process, 'exit');
  assert.ok(await endProcesses({ roots: [root], groups: [] }));
  assert.deepEqual(await exit, [7, null]);
});

test('processes that ignore SIGTERM get SIGKILL', async (t) => {
  const root = await temporaryDirectory(t);
  const child = await start(t, 'trap "" TERM; echo ready; while :; do sleep 1; done', { cwd: root });
  const exit = once(child.process, 'exit');
  assert.ok(await endProcesses({ roots: [root], groups: [] }));
  assert.deepEqual(await exit, [null, 'SIGKILL']);
});

test('the builder’s own process is never found among a build’s processes', async (t) => {
  const root = await temporaryDirectory(t);
  const before = process.cwd();
  process.chdir(root);
  t.after(() => process.chdir(before));
  assert.deepEqual(findProcesses({ roots: [root], groups: [] }), []);
});

test('a process that has ended is not recorded', () => {
  assert.equal(recordOf(2 ** 22 + 1), undefined);
});
