import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

/** Time limit for a stop in milliseconds, just below a job server's timeout. */
const PROMPT = 9500;

test('a manager stops promptly during a build, uploads, deletions and a scan for orphans', async (t) => {
  const site = await ManagerSite.start(t, { diskimage: { keep: 1 }, timing: { orphanScanInterval: 0.01 } });
  const builder = await site.builder();
  const manager = site.manage();
  await site.untilInUse();
  const holds = [new Hold(), new Hold(), new Hold(), new Hold()];
  const [deletion, scan, upload, build] = holds as [Hold, Hold, Hold, Hold];
  site.provider('east').beforeDelete = (signal) => deletion.wait(signal);
  site.provider('east').beforeList = (signal) => scan.wait(signal);
  manager.manager.reconfigure(site.withDebian({ keep: 1, digest: 'second' }));
  await Promise.all([deletion.reached, scan.reached]);
  site.provider('west').beforeUpload = (signal) => upload.wait(signal);
  manager.manager.reconfigure(site.withDebian({ keep: 1, digest: 'third' }));
  await upload.reached;
  builder.beforeBuild = ({ signal }) => build.wait(signal);
  manager.manager.reconfigure(site.withDebian({ keep: 1, digest: 'fourth' }));
  await build.reached;
  const begun = performance.now();
  await manager.stop();
  assert.ok(performance.now() - begun < PROMPT);
  const { builds, uploads } = await site.store.read();
  const states = [...builds.values(), ...uploads.values()].map(({ state }) => state);
  for (const state of ['building', 'uploading', 'deleting'] as const)
    assert.ok(states.includes(state), state);
});

test('a manager stops promptly while a job server does not respond', async (t) => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => sockets.add(socket.on('error', () => {})));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  undoAfter(t, () => {
    silent.close();
    for (const socket of sockets) socket.destroy();
  });
  const site = await ManagerSite.start(t, { ports: [(silent.address() as AddressInfo).port] });
  const manager = site.manage();
  await once(silent, 'connection');
  const begun = performance.now();
  await manager.stop();
  assert.ok(performance.now() - begun < PROMPT);
  assert.deepEqual(
    site.log.lines.filter((line) => line.startsWith('warn')),
    [],
  );
});

test('a manager stops promptly while it stands by', async (t) => {
  const site = await ManagerSite.start(t);
  const leadership = await site.store.lead();
  undoAfter(t, () => leadership.release());
  const manager = site.manage();
  await site.logged(/^info another manager is the leader/);
  const begun = performance.now();
  await manager.stop();
  assert.ok(performance.now() - begun < PROMPT);
});

test('nothing keeps a process alive after its manager has stopped', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'manager-'));
  undoAfter(t, () => rm(directory, { recursive: true, force: true }));
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const child = fork(
    join(import.meta.dirname, 'manager-process.ts'),
    [join(directory, 'state.sqlite'), String(site.ports[0])],
    { execArgv: ['--conditions=@nodepool-builder/source', '--disable-warning=ExperimentalWarning'] },
  );
  undoAfter(t, () => child.kill('SIGKILL'));
  await hold.reached;
  const exited = once(child, 'exit');
  child.send('stop');
  assert.deepEqual(await exited, [0, null]);
});
