import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { builderCommand } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { openNotifySocket } from '../fixtures/notify-socket.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

describe('a daemon under systemd', () => {
  it('reports its start, its reload and its end, and keeps the watchdog from acting', async (t) => {
    const server = await startGearmand();
    undoAfter(t, () => server.stop());
    const site = await createSite(server.port);
    undoAfter(t, () => site.remove());
    const socket = await openNotifySocket(t);
    const env = { ...process.env, NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '600000000' };
    const child = spawn(...builderCommand('-d', '-c', site.config), { env, stdio: 'ignore' });
    undoAfter(t, () => child.kill('SIGKILL'));
    const status = `Job servers: 127.0.0.1:${server.port}. Images: 0.`;
    assert.deepEqual(await socket.next(), { READY: '1', STATUS: status });

    const before = process.hrtime.bigint() / 1000n;
    child.kill('SIGHUP');
    const { MONOTONIC_USEC, ...reloading } = await socket.next();
    assert.deepEqual(reloading, { RELOADING: '1', STATUS: 'Reading the configuration' });
    const time = BigInt(MONOTONIC_USEC ?? 0);
    assert.ok(time >= before && time <= process.hrtime.bigint() / 1000n, MONOTONIC_USEC);
    assert.deepEqual(await socket.next(), { READY: '1', STATUS: status });

    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await socket.next(), {
      STOPPING: '1',
      STATUS: 'finishing the running jobs; send it again to stop them',
    });
    assert.deepEqual(await exited, [0, null]);
  });
});

it('a log that logrotate has moved is opened again at SIGHUP, before the reload is logged', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  const [settings, log] = ['logging.yaml', 'builder.log'].map((name) => join(site.directory, name)) as [
    string,
    string,
  ];
  await writeFile(settings, 'outputs: [{type: file, filename: builder.log}]\n');
  const socket = await openNotifySocket(t);
  const env = { ...process.env, NOTIFY_SOCKET: socket.path };
  const child = spawn(...builderCommand('-d', '-c', site.config, '-l', settings), { env, stdio: 'ignore' });
  undoAfter(t, () => child.kill('SIGKILL'));
  await socket.next();
  await rename(log, `${log}.1`);
  child.kill('SIGHUP');
  await socket.next(); // RELOADING
  await socket.next(); // READY
  child.kill('SIGTERM');
  await once(child, 'exit');
  const [old, current] = await Promise.all([`${log}.1`, log].map((path) => readFile(path, 'utf8')));
  assert.match(old ?? '', /: serving /);
  assert.doesNotMatch(old ?? '', / again$/m);
  assert.match(current ?? '', /^\S+ \S+ INFO nodepool\.builder: read \S+nodepool\.yaml again$/m);
  assert.match(current ?? '', /: stopped$/m);
});
