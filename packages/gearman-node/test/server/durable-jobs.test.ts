import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { JobServer } from '../../src/server/job-server.ts';
import { JobServerSite, settled } from '../fixtures/job-server-site.ts';
import { RawPeer } from '../fixtures/raw-peer.ts';

async function temporaryDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'durable-'));
  undoAfter(t, () => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Starts a process with a job server. */
async function spawnServer(
  t: TestContext,
  journal: string,
): Promise<{ connect: () => Promise<RawPeer>; kill: () => Promise<void> }> {
  const file = join(import.meta.dirname, '../fixtures/journal-server.ts');
  const child = spawn(process.execPath, [file, journal], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  undoAfter(t, kill);
  const [port] = (await once(createInterface(child.stdout), 'line')) as [string];
  const connect = async (): Promise<RawPeer> => {
    const peer = await RawPeer.connect(Number(port));
    undoAfter(t, () => peer.close());
    return peer;
  };
  return { connect, kill };
}

test('background jobs survive a crash of the server, and finished ones do not run again', async (t) => {
  const directory = await temporaryDirectory(t);
  const first = await spawnServer(t, directory);
  const [client, worker] = [await first.connect(), await first.connect()];
  await client.ask('SUBMIT_JOB_LOW_BG', 'f', 'low', 'l\0w');
  const [, done = ''] = await client.ask('SUBMIT_JOB_BG', 'f', 'done', '');
  const [, running = ''] = await client.ask('SUBMIT_JOB_BG', 'f', 'running', 'r');
  await client.ask('SUBMIT_REDUCE_JOB_BACKGROUND', 'f', '', 'sum', '', 'reduced');
  await client.ask('SUBMIT_JOB', 'f', 'foreground', '');
  worker.send('CAN_DO', 'f');
  await worker.ask('GRAB_JOB');
  worker.send('WORK_COMPLETE', done, '');
  await worker.ask('GRAB_JOB');
  // A job that is added after another has ended is on disk after it.
  await client.ask('SUBMIT_JOB_HIGH_BG', 'f', '', 'last');
  await first.kill();

  const second = await spawnServer(t, directory);
  const other = await second.connect();
  other.send('CAN_DO', 'f');
  const jobs: (string | undefined)[][] = [];
  for (let grabs = 0; grabs < 4; grabs += 1) jobs.push((await other.ask('GRAB_JOB_ALL')).slice(3));
  assert.deepEqual(jobs, [
    ['', 'last'],
    ['running', 'r'],
    ['', 'sum', 'reduced'],
    ['low', 'l\0w'],
  ]);
  assert.deepEqual(await other.ask('GRAB_JOB'), ['NO_JOB']);
  assert.deepEqual((await other.ask('GET_STATUS', running)).slice(1, 4), [running, '1', '1']);
  const [, handle = ''] = await other.ask('SUBMIT_JOB_BG', 'f', '', '');
  assert.ok(
    Number(handle.split(':').at(-1)) > Number(running.split(':').at(-1)),
    'handles are not used again',
  );
});

test('a job waits for its start time, even after a restart', async (t) => {
  const journal = await temporaryDirectory(t);
  const now = Date.UTC(2026, 0, 1);
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now });
  const first = await JobServerSite.start(t, { journal });
  const client = await first.connect();
  const due = now / 1000 + 2;
  await client.ask('SUBMIT_JOB_EPOCH', 'f', '', due, 'soon');
  await client.ask('SUBMIT_JOB_EPOCH', 'f', '', due + 86_400, 'tomorrow');
  await first.server.close();
  t.mock.timers.tick(500);
  const worker = await (await JobServerSite.start(t, { journal })).worker('f');
  assert.equal((await worker.ask('GRAB_JOB'))[0], 'NO_JOB');
  worker.send('PRE_SLEEP');
  t.mock.timers.tick(1499);
  assert.deepEqual(await settled(worker), [], 'the job does not start too early');
  t.mock.timers.tick(1);
  assert.deepEqual(await worker.next(), ['NOOP']);
  assert.equal((await worker.ask('GRAB_JOB')).at(-1), 'soon');
});

test('a closed server keeps waiting and running jobs in its journal, also if their workers disconnect', async (t) => {
  const journal = await temporaryDirectory(t);
  const first = await JobServerSite.start(t, { journal, maxAttempts: 1 });
  const worker = await first.worker('f');
  await worker.ask('SUBMIT_JOB_BG', 'f', '', 'x');
  await worker.ask('GRAB_JOB');
  await first.server.close();
  const next = await (await JobServerSite.start(t, { journal })).worker('f');
  assert.equal((await next.ask('GRAB_JOB')).at(-1), 'x');
});

test('a foreground job becomes durable when a background job joins it', async (t) => {
  const journal = await temporaryDirectory(t);
  const first = await JobServerSite.start(t, { journal });
  const client = await first.connect();
  await client.ask('SUBMIT_JOB', 'f', 'key', 'x');
  await client.ask('SUBMIT_JOB', 'f', 'alone', 'y');
  await client.ask('SUBMIT_JOB_BG', 'f', 'key', 'x');
  await first.server.close();
  const worker = await (await JobServerSite.start(t, { journal })).worker('f');
  assert.equal((await worker.ask('GRAB_JOB')).at(-1), 'x');
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
});

test('responses stay in the order of the requests, despite a slow disk', async (t) => {
  const site = await JobServerSite.start(t, { journal: await temporaryDirectory(t) });
  const client = await site.connect();
  for (let round = 0; round < 50; round += 1) {
    client.send('SUBMIT_JOB_BG', 'f', '', '');
    client.send('SUBMIT_JOB', 'f', '', '');
    client.send('OPTION_REQ', 'nonsense');
    client.sendBytes('drop function g\n');
  }
  const replies = await settled(client);
  assert.deepEqual(
    replies.map(([name]) => name),
    Array.from({ length: 50 }, () => ['JOB_CREATED', 'JOB_CREATED', 'ERROR', 'LINE']).flat(),
  );
  const numbers = replies
    .filter(([name]) => name === 'JOB_CREATED')
    .map(([, handle]) => Number(handle?.split(':').at(-1)));
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  );
});

test('a job that cannot be stored gets an ERROR packet and is dropped', async (t) => {
  const directory = join(await temporaryDirectory(t), 'journal');
  const errors: string[] = [];
  const logger = { debug() {}, info() {}, warn: assert.fail, error: (text: string) => errors.push(text) };
  const site = await JobServerSite.start(t, { journal: directory, logger });
  const [client, worker] = [await site.connect(), await site.connect()];
  await client.ask('SUBMIT_JOB_BG', 'f', '', Buffer.alloc(2_000_000));
  await rm(directory, { recursive: true });
  assert.deepEqual((await client.ask('SUBMIT_JOB_BG', 'g', '', 'x')).slice(0, 2), ['ERROR', 'QUEUE_ERROR']);
  assert.match(errors.join('\n'), /journal.*ENOENT/);
  worker.send('CAN_DO', 'g');
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
  await mkdir(directory);
  assert.equal((await client.ask('SUBMIT_JOB_BG', 'g', '', 'x'))[0], 'JOB_CREATED');
});

test('a server on the journal directory of another server fails with journal-failed', async (t) => {
  const journal = await temporaryDirectory(t);
  await JobServerSite.start(t, { journal });
  const second = new JobServer({ journal });
  await assert.rejects(second.listen(0), { code: 'journal-failed' });
  await second.close();
});
