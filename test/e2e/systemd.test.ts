import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { Client } from '@nodepool-builder/gearman-node';
import { builderCommand } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { openNotifySocket } from '../fixtures/notify-socket.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

describe('a daemon under systemd', () => {
  it('a daemon under systemd reports its start, its reload and its end, and keeps the watchdog from acting', async (t) => {
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

it('a daemon under systemd opens a log that logrotate has moved at SIGHUP, before the reload is logged', async (t) => {
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
  assert.match(current ?? '', /^\S+ \S+ INFO nodepool\.builder: reloaded \S+nodepool\.yaml$/m);
  assert.match(current ?? '', /: stopped$/m);
});

/** Disk images whose builds print a trace. One succeeds, one fails. */
const TRACED = `
  - {name: traced, builder: command, command: [sh, -xc, 'truncate -s 1M "$1"', sh, '{output.raw}'], formats: [raw]}
  - {name: failing, builder: command, command: [sh, -xc, 'exit 3'], formats: [raw]}`;

/** Runs a daemon that builds both images with standard error in a file. Returns the lines in the file. */
async function journalOf(
  t: TestContext,
  { args = [], inherited = false }: { readonly args?: readonly string[]; readonly inherited?: boolean },
): Promise<readonly string[]> {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port, TRACED);
  undoAfter(t, () => site.remove());
  const path = join(site.directory, 'journal');
  const journal = await open(path, 'a');
  undoAfter(t, () => journal.close());
  const { dev, ino } = await journal.stat({ bigint: true });
  const socket = await openNotifySocket(t);
  const stream = inherited ? '1:1' : `${dev}:${ino}`;
  const child = spawn(...builderCommand('-d', '-c', site.config, ...args), {
    env: { ...process.env, NOTIFY_SOCKET: socket.path, JOURNAL_STREAM: stream },
    stdio: ['ignore', 'ignore', journal.fd],
  });
  undoAfter(t, () => child.kill('SIGKILL'));
  await socket.next();
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  undoAfter(t, () => client.close());
  await client.submit('image-build:traced', '{"image-id": "traced-1"}');
  await assert.rejects(async () => await client.submit('image-build:failing', '{"image-id": "failing-1"}'));
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
  return (await readFile(path, 'utf8')).trimEnd().split('\n');
}

describe('the journal', () => {
  it('the journal gets a priority with each line, no second timestamp, and no output of builds', async (t) => {
    const lines = await journalOf(t, {});
    for (const line of lines) assert.match(line, /^<[3467]>(?:nodepool|gear)\.[\w.]+: \S/);
    assert.ok(
      lines.some((line) => /^<3>nodepool\.builder\.BuildWorker: build failing-1 .* failed/.test(line)),
    );
    assert.ok(lines.some((line) => /^<6>nodepool\.builder: stopped$/.test(line)));
    assert.deepEqual(
      lines.filter((line) => line.includes('nodepool.image.build')),
      [],
    );
  });

  it('the journal gets builds’ output with --log-level debug', async (t) => {
    const lines = await journalOf(t, { args: ['--log-level', 'debug'] });
    assert.ok(lines.some((line) => line.startsWith('<6>nodepool.image.build.traced: + truncate -s 1M ')));
  });

  it('a daemon whose standard error is not the journal logs with the time and level', async (t) => {
    const lines = await journalOf(t, { inherited: true });
    for (const line of lines) assert.match(line, /^[\d-]{10} [\d:,]{12} [A-Z]+ (?:nodepool|gear)\.[\w.]+: /);
    assert.ok(lines.some((line) => / INFO nodepool\.image\.build\.traced: \+ truncate -s 1M /.test(line)));
  });

  it('the journal gets the reason as an error if a daemon does not start', async (t) => {
    const site = await createSite(1, ' 5');
    undoAfter(t, () => site.remove());
    const path = join(site.directory, 'journal');
    const journal = await open(path, 'a');
    undoAfter(t, () => journal.close());
    const { dev, ino } = await journal.stat({ bigint: true });
    const child = spawn(...builderCommand('-d', '-c', site.config), {
      env: { ...process.env, JOURNAL_STREAM: `${dev}:${ino}` },
      stdio: ['ignore', 'ignore', journal.fd],
    });
    assert.deepEqual(await once(child, 'exit'), [1, null]);
    assert.match(await readFile(path, 'utf8'), /^(?:<3>\S+nodepool\.yaml:\d+:\d+: .+\n)+$/);
  });
});
