// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VERSION } from '../../src/server/admin-replies.ts';
import type { CancelledJob } from '../../src/server/job-server.ts';
import { JobServerSite, nextJob, settled } from '../fixtures/job-server-site.ts';
import type { RawPeer } from '../fixtures/raw-peer.ts';

/** Reads the lines of a reply: up to a dot, or a single one. */
async function command(peer: RawPeer, line: string): Promise<string[]> {
  peer.sendBytes(`${line}\n`);
  const lines: string[] = [];
  for (;;) {
    const [kind, text = ''] = await peer.next();
    assert.equal(kind, 'LINE');
    lines.push(text);
    if (text === '.' || /^(OK|ERR)\b/.test(text)) return lines;
  }
}

test('the admin lists of a server without jobs and workers are empty', async (t) => {
  const site = await JobServerSite.start(t);
  const admin = await site.connect();
  for (const line of ['status', 'prioritystatus', 'show jobs', 'show unique jobs']) {
    assert.deepEqual(await command(admin, line), ['.']);
  }
  assert.deepEqual(await command(admin, 'workers'), ['1 127.0.0.1 - :', '.']);
});

test('the admin commands status, prioritystatus and workers reply in gearmand’s format', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f', 'image-build:debian');
  const client = await site.connect();
  for (const name of ['SUBMIT_JOB', 'SUBMIT_JOB_HIGH_BG', 'SUBMIT_JOB_LOW'] as const) {
    await client.ask(name, 'f', '', '');
  }
  const admin = await site.connect();
  assert.deepEqual(await command(admin, 'workers'), [
    '1 127.0.0.1 - : f image-build:debian',
    '2 127.0.0.1 - :',
    '3 127.0.0.1 - :',
    '.',
  ]);
  assert.deepEqual(await command(admin, 'status'), ['f\t3\t0\t1', 'image-build:debian\t0\t0\t1', '.']);
  assert.deepEqual(await command(admin, 'prioritystatus'), [
    'f\t1\t1\t1\t1',
    'image-build:debian\t0\t0\t0\t1',
    '.',
  ]);
  await worker.ask('GRAB_JOB');
  assert.deepEqual(await command(admin, 'status'), ['f\t3\t1\t1', 'image-build:debian\t0\t0\t1', '.']);
});

test('the admin command show jobs lists handles, retries and the background flag', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  const [, first] = await client.ask('SUBMIT_JOB', 'f', 'one', '');
  const [, second] = await client.ask('SUBMIT_JOB_BG', 'g', 'two', '');
  const lost = await site.worker('f');
  await nextJob(lost);
  await lost.close();
  await nextJob(await site.worker('f'));
  const admin = await site.connect();
  assert.deepEqual(await command(admin, 'show jobs'), [`${first}\t1\t0\t0`, `${second}\t0\t0\t1`, '.']);
  assert.deepEqual(await command(admin, 'show unique jobs'), ['one', 'two', '.']);
});

test('the admin commands version, verbose and getpid reply with one line each', async (t) => {
  const admin = await (await JobServerSite.start(t)).connect();
  assert.deepEqual(await command(admin, 'version'), [`OK ${VERSION}`]);
  assert.deepEqual(await command(admin, 'verbose'), ['OK ERROR']);
  assert.deepEqual(await command(admin, 'getpid'), [`OK ${process.pid}`]);
});

test('the admin command maxqueue sets and removes a function’s limit, by priority with three numbers', async (t) => {
  const site = await JobServerSite.start(t);
  const admin = await site.connect();
  const client = await site.connect();
  assert.deepEqual(await command(admin, 'maxqueue f 1'), ['OK']);
  assert.equal((await client.ask('SUBMIT_JOB', 'f', '', ''))[0], 'JOB_CREATED');
  assert.deepEqual((await client.ask('SUBMIT_JOB', 'f', '', '')).slice(0, 2), ['ERROR', 'QUEUE_ERROR']);
  assert.deepEqual(await command(admin, 'maxqueue f 1 0 1'), ['OK']);
  assert.equal((await client.ask('SUBMIT_JOB', 'f', '', ''))[0], 'JOB_CREATED');
  assert.equal((await client.ask('SUBMIT_JOB_HIGH', 'f', '', ''))[0], 'ERROR');
  assert.equal((await client.ask('SUBMIT_JOB_LOW', 'f', '', ''))[0], 'ERROR');
  for (const lift of ['maxqueue f 0', 'maxqueue f', 'maxqueue f -1', 'maxqueue f x']) {
    await command(admin, 'maxqueue f 1');
    assert.deepEqual(await command(admin, lift), ['OK']);
    assert.equal((await client.ask('SUBMIT_JOB', 'f', '', ''))[0], 'JOB_CREATED', lift);
  }
});

test('the admin commands create function and drop function add and remove a function', async (t) => {
  const site = await JobServerSite.start(t);
  const admin = await site.connect();
  assert.deepEqual(await command(admin, 'create function f\r'), ['OK']);
  assert.deepEqual(await command(admin, 'status'), ['f\t0\t0\t0', '.']);
  const worker = await site.worker('f');
  assert.match((await command(admin, 'drop function f')).join(), /^ERR there are still connected workers/);
  await worker.close();
  let status: string[];
  do status = await command(admin, 'status');
  while (status[0] !== 'f\t0\t0\t0');
  assert.deepEqual(await command(admin, 'drop function f'), ['OK']);
  assert.deepEqual(await command(admin, 'drop function f'), ['ERR function not found']);
  assert.deepEqual(await command(admin, 'status'), ['.']);
});

test('the admin command cancel job fails the job for its client and removes it from its worker', async (t) => {
  const cancelled: CancelledJob[] = [];
  const site = await JobServerSite.start(t, {
    onCancel: (job) => {
      cancelled.push(job);
      return job.function === 'f' ? 'cancelled' : undefined;
    },
  });
  const admin = await site.connect();
  const worker = await site.worker('f');
  const [running, runningHandle] = await site.submit('f');
  const [queued, queuedHandle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  for (const [client, handle] of [
    [queued, queuedHandle],
    [running, runningHandle],
  ] as const) {
    assert.deepEqual(await command(admin, `cancel job ${handle}`), ['OK']);
    assert.deepEqual(await client.next(), ['WORK_WARNING', handle, 'cancelled']);
    assert.deepEqual(await client.next(), ['WORK_FAIL', handle]);
    assert.deepEqual(await command(admin, `cancel job ${handle}`), ['ERR UNKNOWN_JOB']);
  }
  assert.deepEqual(
    cancelled.map(({ handle, isRunning }) => [handle, isRunning]),
    [
      [queuedHandle, false],
      [runningHandle, true],
    ],
  );
  assert.equal((await worker.ask('WORK_COMPLETE', runningHandle, ''))[1], 'JOB_NOT_FOUND');
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
});

test('unknown admin commands and missing arguments get an error, and the connection stays open', async (t) => {
  const admin = await (await JobServerSite.start(t)).connect();
  for (const line of [
    '',
    '   ',
    'nonsense',
    'show',
    'cancel',
    'cancel job',
    'cancel x',
    'toString',
    '__proto__',
    'shutdown',
    'ü\x80%',
    '+',
  ]) {
    assert.match((await command(admin, line)).join(), /^ERR UNKNOWN_COMMAND /, JSON.stringify(line));
  }
  for (const line of [
    'maxqueue',
    'create',
    'create function',
    'create function f g',
    'drop',
    'drop function',
  ]) {
    assert.match((await command(admin, line)).join(), /^ERR INVALID_ARGUMENTS /, line);
  }
  for (const line of ['show x', 'show unique', 'show jobs x', 'show unique jobs x']) {
    assert.deepEqual(await command(admin, line), ['ERR UNKNOWN_SHOW_ARGUMENTS'], line);
  }
  for (const line of ['cancel x y', 'cancel jobs x', 'cancel job x y']) {
    assert.deepEqual(await command(admin, line), ['ERR UNKNOWN_ERROR'], `${line}, as gearmand answers`);
  }
  assert.deepEqual(await command(admin, 'STATUS'), ['.'], 'case is ignored');
});

test('packets and commands may be mixed on one connection', async (t) => {
  const site = await JobServerSite.start(t);
  const peer = await site.connect();
  peer.send('CAN_DO', 'f');
  peer.sendBytes('status\n');
  peer.send('ECHO_REQ', 'x');
  assert.deepEqual(await peer.until('ECHO_RES'), [
    ['LINE', 'f\t0\t0\t1'],
    ['LINE', '.'],
    ['ECHO_RES', 'x'],
  ]);
});

test('the admin command shutdown calls onShutdown after the reply', async (t) => {
  const wishes: boolean[] = [];
  const site = await JobServerSite.start(t, { onShutdown: (graceful) => wishes.push(graceful) });
  const admin = await site.connect();
  assert.match((await command(admin, 'shutdown now')).join(), /^ERR INVALID_ARGUMENTS /);
  assert.deepEqual(await command(admin, 'shutdown graceful'), ['OK']);
  assert.deepEqual(await command(admin, 'shutdown'), ['OK']);
  assert.deepEqual(wishes, [true, false]);
});

test('the admin command shutdown gets its reply even if it closes the server immediately', async (t) => {
  const closing = Promise.withResolvers<void>();
  const site = await JobServerSite.start(t, { onShutdown: () => closing.resolve(site.server.close()) });
  const admin = await site.connect();
  assert.deepEqual(await command(admin, 'shutdown'), ['OK']);
  await Promise.all([closing.promise, admin.closed]);
});

test('a long admin list is sent in parts while other peers are served, and a slow reader uses little memory', async (t) => {
  const [functions, lists] = [2000, 200];
  const site = await JobServerSite.start(t, { maxOutputBuffer: 1024 * 1024 });
  const worker = await site.worker(...Array.from({ length: functions }, (_, index) => `function-${index}`));
  const [operator, other] = [await site.connect(), await site.connect()];
  operator.socket.pause();
  // About 8 MB of replies.
  operator.sendBytes('status\n'.repeat(lists));
  operator.sendBytes('version\n');
  assert.deepEqual(await other.ask('ECHO_REQ', 'meanwhile'), ['ECHO_RES', 'meanwhile']);
  worker.send('CANT_DO', 'function-1999');
  operator.socket.resume();
  let ends = 0;
  let lines = 0;
  for (;;) {
    const [, text = ''] = await operator.next();
    if (text.startsWith('OK')) break;
    if (text === '.') ends += 1;
    else lines += 1;
  }
  assert.equal(ends, lists);
  assert.ok(lines >= lists * (functions - 1) && lines < lists * functions, `${lines}`);
});

test('admin commands run in order, even after a long list', async (t) => {
  const site = await JobServerSite.start(t);
  await site.worker(...Array.from({ length: 3000 }, (_, index) => `function-${index}`));
  const operator = await site.connect();
  operator.sendBytes('status\ncreate function late\nstatus\nversion\n');
  const replies: string[][] = [[]];
  for (let text = ''; !text.startsWith(`OK ${VERSION}`); ) {
    [, text = ''] = await operator.next();
    replies.at(-1)?.push(text);
    if (text === '.' || text === 'OK') replies.push([]);
  }
  assert.deepEqual(
    replies.map((reply) => reply.length),
    [3001, 1, 3002, 1],
  );
});

test('replies after an unread long admin list count towards the output limit', async (t) => {
  const site = await JobServerSite.start(t, { maxOutputBuffer: 1024 * 1024 });
  const worker = await site.worker(...Array.from({ length: 3000 }, (_, index) => `function-${index}`));
  const [client, handle] = await site.submit('function-0');
  await worker.ask('GRAB_JOB');
  client.socket.pause();
  client.sendBytes('status\n'.repeat(1000));
  // The reply must exceed the socket buffers.
  for (let sent = 0; sent < 100; sent += 1) {
    worker.send('WORK_DATA', handle, Buffer.alloc(100_000));
    await settled(worker);
  }
  client.socket.resume();
  await client.closed;
  assert.deepEqual(await settled(worker), []);
});
