import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Admin, Client, GearmanError, JobServer, Worker } from '../src/index.ts';

const HOST = '127.0.0.1';
const SERVERS = [{ host: HOST, port: 1 }];

/** Calls a function with an unknown option, as an untyped program can. */
type Call = (options: never) => unknown;

const CALLS: readonly (readonly [title: string, call: Call, options: object, unknown: string])[] = [
  ['an Admin', (options) => new Admin({ host: HOST }, options), { timeOut: 1000 }, 'timeOut'],
  ['an address', (address) => new Admin(address), { host: HOST, port: 1, timeout: 1000 }, 'timeout'],
  ['a Client', (options) => new Client(options), { servers: SERVERS, clientID: 'ci' }, 'clientID'],
  ['a Worker', (options) => new Worker(options), { servers: SERVERS, concurency: 2 }, 'concurency'],
  ['a JobServer', (options) => new JobServer(options), { maxConnection: 2 }, 'maxConnection'],
  [
    'the address in a Client',
    (options) => new Client(options),
    { servers: [{ ...SERVERS[0], ssl: {} }] },
    'ssl',
  ],
  [
    'the address in a Worker',
    (options) => new Worker(options),
    { servers: [{ ...SERVERS[0], timeout: 1 }] },
    'timeout',
  ],
  [
    'the pauses of a Client',
    (options) => new Client(options),
    { servers: SERVERS, reconnect: { maximum: 1 } },
    'maximum',
  ],
  [
    'the pauses of a Worker',
    (options) => new Worker(options),
    { servers: SERVERS, reconnect: { maximum: 1 } },
    'maximum',
  ],
  [
    'a right',
    (options) => new JobServer(options),
    { tls: { requestCert: true }, access: { ci: { sumbit: [''] } } },
    'sumbit',
  ],
];

describe('unknown options', () => {
  for (const [title, call, options, unknown] of CALLS) {
    test(`an unknown option of ${title} is rejected by its name`, () => {
      assert.throws(() => call(options as never), isRefused(unknown));
    });
  }

  test('an unknown option of a job is rejected by its name', async () => {
    const client = new Client({ servers: SERVERS });
    assert.throws(() => client.submit('f', '', { uniqe: 'a' } as never), isRefused('uniqe'));
    await client.close();
  });

  test('an unknown option of a worker’s function is rejected by its name', async () => {
    const worker = new Worker({ servers: SERVERS });
    const declared = { handler() {}, timeout: 1, retries: 2 };
    assert.throws(() => worker.add('f', declared), isRefused('retries'));
    await assert.rejects(worker.close({ timeout: 1 } as never), isRefused('timeout'));
    await worker.close();
  });

  test('an unknown option of a shutdown is rejected by its name', async () => {
    const admin = new Admin({ host: HOST });
    await assert.rejects(admin.shutdown({ gracefully: true } as never), isRefused('gracefully'));
    await admin.close();
  });
});

test('a client, worker or server rejects options that are not an object', () => {
  for (const options of [null, 'host', 4730] as never[]) {
    for (const create of [
      () => new Client(options),
      () => new Worker(options),
      () => new JobServer(options),
    ]) {
      assert.throws(create, { code: 'invalid-argument', message: /give an object/ });
    }
  }
});

function isRefused(unknown: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof GearmanError &&
    error.code === 'invalid-argument' &&
    error.message.includes(`"${unknown}" cannot be used: use `);
}
