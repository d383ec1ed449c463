import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { JobServer } from '@nodepool-builder/gearman-node';
import type { RawPeer } from '../../../packages/gearman-node/test/fixtures/raw-peer.ts';
import { startGearmand } from '../../fixtures/gearmand.ts';
import { SERVERS, site } from './site.ts';

/** Admin commands in order, with the bytes of their replies. */
const CONVERSATION: readonly (readonly [command: string, reply: string])[] = [
  ['status', '.\n'],
  ['prioritystatus', '.\n'],
  ['show jobs', '.\n'],
  ['show unique jobs', '.\n'],
  ['create function f', 'OK\r\n'],
  ['status', 'f\t0\t0\t0\n.\n'],
  ['prioritystatus', 'f\t0\t0\t0\t0\n.\n'],
  ['STATUS and more', 'f\t0\t0\t0\n.\n'],
  ['maxqueue f 1', 'OK\r\n'],
  ['maxqueue f 1 2 3', 'OK\r\n'],
  ['maxqueue f', 'OK\r\n'],
  ['drop function f', 'OK\r\n'],
  ['drop function f', 'ERR function not found\r\n'],
  ['cancel job H:nowhere:1', 'ERR UNKNOWN_JOB\r\n'],
  ['verbose', 'OK ERROR\n'],
  ['show x', 'ERR UNKNOWN_SHOW_ARGUMENTS\r\n'],
  ['show jobs x', 'ERR UNKNOWN_SHOW_ARGUMENTS\r\n'],
  ['show unique', 'ERR UNKNOWN_SHOW_ARGUMENTS\r\n'],
  ...(['maxqueue', 'create', 'create function', 'create function a b', 'drop', 'drop function'] as const).map(
    (command) => {
      const [word = ''] = command.split(' ');
      const reply = `ERR INVALID_ARGUMENTS An+incomplete+set+of+arguments+was+sent+to+this+command+${word}\r\n`;
      return [command, reply] as const;
    },
  ),
];

/** Unknown commands, to which the servers reply with different texts. */
const UNKNOWN: readonly string[] = [
  '',
  '  ',
  'nonsense',
  'show',
  'cancel',
  'cancel job',
  'cancel x',
  'shutdown',
];

/** Sends a line. Returns the bytes of the reply: a list up to its dot, or a line. */
async function type(socket: Socket, line: string): Promise<string> {
  socket.write(`${line}\r\n`);
  let reply = '';
  while (!/^(OK|ERR)\b.*\n$|(^|\n)\.\n$/s.test(reply)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    reply += chunk.toString('latin1');
  }
  return reply;
}

for (const [server, start] of Object.entries(SERVERS)) {
  suite(`the admin text protocol of ${server}`, () => {
    test('the replies to admin commands equal the documented bytes', async (t) => {
      const { address } = await start(t);
      const socket = connect(address);
      t.after(() => socket.destroy());
      for (const [command, reply] of CONVERSATION) assert.equal(await type(socket, command), reply, command);
      for (const command of UNKNOWN) {
        assert.match(
          await type(socket, command),
          /^ERR UNKNOWN_COMMAND Unknown\+server\+command\S*\r\n$/,
          command,
        );
      }
      assert.match(await type(socket, 'version'), /^OK \d+\.\d+\.\d+\S*\n$/);
      assert.match(await type(socket, 'getpid'), /^OK \d+\n$/);
    });
  });
}

/** Limits each function to two workers with a job. */
const TWO_ATTEMPTS: Readonly<Record<string, (t: TestContext) => Promise<number>>> = {
  'gearmand -j 2': async (t) => {
    const gearmand = await startGearmand('-j', '2');
    t.after(() => gearmand.stop());
    return gearmand.port;
  },
  'the embedded job server': async (t) => {
    const server = new JobServer({ maxAttempts: 2 });
    t.after(() => server.close());
    return (await server.listen(0)).port;
  },
};

for (const [server, start] of Object.entries(TWO_ATTEMPTS)) {
  test(`a job fails on ${server} after two workers died while running it`, async (t) => {
    const { admin, connect: open } = site(t, await start(t));
    const client = await open();
    const [, handle = ''] = await client.ask('SUBMIT_JOB', 'f', '', '');
    for (let attempt = 0; attempt < 2; attempt += 1) await die(await open(), handle);
    assert.deepEqual(await client.next(), ['WORK_FAIL', handle]);
    assert.deepEqual(await admin.showJobs(), []);
  });
}

/** Starts a worker that is lost with its job, once it has one. */
async function die(worker: RawPeer, handle: string): Promise<void> {
  worker.send('CAN_DO', 'f');
  worker.send('PRE_SLEEP');
  await worker.until('NOOP');
  assert.equal((await worker.ask('GRAB_JOB'))[1], handle);
  await worker.close();
}
