import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Admin, Client, Worker } from '@nodepool-builder/gearman-node';
import {
  gearmandHelp,
  refusedGearmand,
  startGearmandCommand,
  temporaryDirectory,
} from '../fixtures/gearmand-command.ts';
import { selfSigned } from '../fixtures/self-signed.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

test('gearmand’s help names each option, and what SIGHUP does', async () => {
  const help = await gearmandHelp();
  for (const word of [
    '--journal',
    '--job-retries',
    '--tls-cert',
    '--tls-key',
    '--tls-ca',
    '--access-list',
    '--max-packet-size',
    '--max-output-buffer',
    '--max-total-output',
    '--exceptions',
    '--round-robin',
    'SIGHUP',
    'Examples:',
  ]) {
    assert.ok(help.includes(word), word);
  }
});

test('a background job survives SIGKILL of gearmand with --journal', async (t) => {
  const journal = join(await temporaryDirectory(t), 'journal');
  const first = await startGearmandCommand(t, '--journal', journal);
  const client = new Client({ servers: [first.address] });
  await client.submit('f', 'x', { background: true }).handle;
  await client.close();
  const exited = once(first.child, 'exit');
  first.child.kill('SIGKILL');
  await exited;

  const { address } = await startGearmandCommand(t, '--journal', journal);
  const worker = new Worker({ servers: [address] });
  undoAfter(t, () => worker.close());
  const done = Promise.withResolvers<string>();
  worker.add('f', ({ payload }) => done.resolve(String(payload)));
  assert.equal(await done.promise, 'x');
});

test('SIGHUP reloads gearmand’s certificates, and an invalid one is logged and not used', async (t) => {
  const directory = await temporaryDirectory(t);
  const [cert, key, ca] = ['cert', 'key', 'ca'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const [former, renewed, mine] = [
    await selfSigned('former'),
    await selfSigned('renewed'),
    await selfSigned('me'),
  ];
  const install = (pair: { cert: string; key: string }): Promise<unknown> =>
    Promise.all([writeFile(cert, pair.cert), writeFile(key, pair.key)]);
  await install(former);
  await writeFile(ca, mine.cert);
  const { child, address, logged } = await startGearmandCommand(
    t,
    '--tls-cert',
    cert,
    '--tls-key',
    key,
    '--tls-ca',
    ca,
  );
  const admin = (tls: object): Admin => {
    const opened = new Admin({ ...address, tls });
    undoAfter(t, () => opened.close());
    return opened;
  };
  const standing = admin({ ...mine, ca: former.cert });
  await standing.version();
  await assert.rejects(admin({ ca: former.cert }).version());
  assert.match(await logged(), /a TLS handshake with 127\.0\.0\.1:\d+ failed/);

  await writeFile(cert, 'nonsense');
  child.kill('SIGHUP');
  assert.match(await logged(), /the certificate or its key cannot be used/);
  await admin({ ...mine, ca: former.cert }).version();

  await install(renewed);
  child.kill('SIGHUP');
  assert.match(await logged(), /reloaded the certificate/);
  await admin({ ...mine, ca: renewed.cert }).version();
  await standing.version();
});

test('shutdown and shutdown graceful work only with --allow-shutdown', async (t) => {
  const { address } = await startGearmandCommand(t);
  const deaf = new Admin(address);
  undoAfter(t, () => deaf.close());
  await assert.rejects(deaf.shutdown(), { serverCode: 'UNKNOWN_COMMAND' });

  for (const graceful of [true, false]) {
    const server = await startGearmandCommand(t, '--allow-shutdown');
    const admin = new Admin(server.address);
    undoAfter(t, () => admin.close());
    const exited = once(server.child, 'exit');
    await admin.shutdown({ graceful });
    assert.deepEqual(await exited, [0, null]);
  }
});

test('a job fails after --job-retries workers died while running it', async (t) => {
  const { address } = await startGearmandCommand(t, '-j', '1');
  const client = new Client({ servers: [address] });
  undoAfter(t, () => client.close());
  const job = client.submit('f');
  const worker = spawn(...workerThatDies(address.port), { stdio: 'ignore' });
  undoAfter(t, () => worker.kill('SIGKILL'));
  await assert.rejects(job.result, { code: 'job-failed' });
});

/** Starts a worker whose process ends during its job. */
function workerThatDies(port: number): [command: string, args: string[]] {
  return [
    'gearman',
    ['-w', '-h', '127.0.0.1', '-p', `${port}`, '-f', 'f', '--', 'sh', '-c', 'kill -9 $PPID'],
  ];
}

test('invalid combinations of gearmand’s options are rejected', async (t) => {
  const file = join(await temporaryDirectory(t), 'file');
  await writeFile(file, 'nonsense');
  const cases = [
    [['--tls-cert', file], 2, /give both --tls-cert and --tls-key/],
    [['--tls-ca', file], 2, /give both --tls-cert and --tls-key/],
    [['--tls-cert', `${file}-missing`, '--tls-key', file], 1, /cannot read ".*file-missing"/],
    [['--tls-cert', file, '--tls-key', file], 1, /the certificate or its key cannot be used/],
    [['--tls-cert', file, '--tls-key', file, '--access-list', file], 2, /give --tls-ca with --access-list/],
    [['--journal', file], 1, /the journal in .* cannot be used/],
    [['--job-retries', '-1'], 2, /whole number/],
    [
      [
        '--max-connections',
        '--max-packet-size',
        '--max-output-buffer',
        '--max-total-output',
        '--exceptions',
        '--round-robin',
        '0',
      ],
      2,
      /whole number above 0/,
    ],
  ] as const;
  await Promise.all(
    cases.map(async ([options, code, reason]) => {
      const error = await refusedGearmand(...options);
      assert.equal(error.code, code, options.join(' '));
      assert.match(String(error.stderr), reason);
    }),
  );
});
