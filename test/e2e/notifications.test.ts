// Only in test:all: it waits for several builds and uploads.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { Client } from '@nodepool-builder/gearman-node';
import { startBuilder } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createManagedSite, endAfter, type ManagedSite, type Settings } from '../fixtures/managed-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const RECEIVER = join(import.meta.dirname, '../../examples/notifications/receiver.py');

interface ReceivingSite extends ManagedSite {
  /** File that makes builds fail while it exists. */
  readonly broken: string;
  /** Texts that the example's receiver has printed. */
  readonly texts: readonly string[];
}

/** Starts a site whose build fails at first, and the example's receiver. */
async function startSite(t: TestContext, entry: Settings, port?: number): Promise<ReceivingSite> {
  const site = await createManagedSite(t, {}, port);
  const [secret, broken] = ['secret', 'broken'].map((name) => join(site.directory, name)) as [string, string];
  await writeFile(secret, 'a secret\n');
  await writeFile(broken, '');
  const receiver = spawn('python3', [RECEIVER, '0', secret], { stdio: ['ignore', 'pipe', 'inherit'] });
  undoAfter(t, () => receiver.kill());
  const texts: string[] = [];
  createInterface(receiver.stdout).on('line', (line) => texts.push(line));
  const listening = await waitUntil('the receiver', () => texts.shift());
  const url = `http://127.0.0.1:${listening.split(' ').at(-1)}/`;
  const script = `[ ! -e '${broken}' ] || { echo E: Unable to locate package foo; exit 1; }; truncate -s 1M "$1"`;
  await site.configure({
    manager: { store: 'state/manager.sqlite', 'retry-delay': 0.2 },
    diskimages: [
      {
        name: 'docs',
        builder: 'command',
        formats: ['raw'],
        command: ['sh', '-c', script, 'sh', '{output.raw}'],
      },
    ],
    notifications: [{ name: 'python', url, 'secret-file': secret, ...entry }],
  });
  return { ...site, broken, texts };
}

test('the manager notifies a webhook of a failure with its reason, of the recovery, and of uploads', async (t) => {
  const site = await startSite(t, { events: ['build-failed', 'build-succeeded', 'upload-succeeded'] });
  const service = endAfter(t, await startBuilder(site.config, '--all-in-one'));
  const first = await waitUntil('the failure', () => site.texts[0]);
  assert.match(
    first,
    RegExp(
      `^build docs-\\S+ of docs failed: .*E: Unable to locate package foo; see .* \\(on ${hostname()}\\)$`,
    ),
  );
  await rm(site.broken);
  const rest = await waitUntil('both uploads', () => {
    const good = site.texts.filter((text) => text.includes('is ready'));
    return good.length === 3 && good;
  });
  // The receiver responds to each event before printing it, each in its own thread.
  assert.deepEqual(rest.map((text) => text.replace(/docs-\S+/, 'ID')).toSorted(), [
    'build ID of docs is ready, for the first time after a failure',
    'upload of ID to east is ready',
    'upload of ID to west is ready',
  ]);
  assert.equal(await service.end('SIGTERM'), 0);
});

test('a builder notifies of other clients’ jobs, such as nodepool’s, and not of its own commands’ jobs', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await startSite(t, { events: ['build-failed', 'build-succeeded'] }, server.port);
  const builder = endAfter(t, await startBuilder(site.config));
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  undoAfter(t, () => client.close());
  const build = async (id: string): Promise<unknown> =>
    await client.submit('image-build:docs', `{"image-id": "${id}"}`).result.catch(() => {});
  assert.equal((await runCommand('image-build', 'docs', '-c', site.config)).code, 1);
  await build('1');
  await rm(site.broken);
  await build('2');
  assert.equal(await builder.end('SIGTERM'), 0);
  // The receiver responds to an event, which the builder waits for, before printing it.
  const [first = '', second, ...others] = await waitUntil(
    'both texts',
    () => site.texts.length > 1 && site.texts,
  );
  assert.match(first, /^build 1 of docs failed: .*Unable to locate package foo/);
  assert.deepEqual([second, others], ['build 2 of docs is ready, for the first time after a failure', []]);
});

test('the command notify-test prints a receiver’s response, and fails if the receiver rejects the event', async (t) => {
  const site = await startSite(t, {});
  const good = await runCommand('notify-test', 'python', '-c', site.config);
  assert.deepEqual(good, { code: 0, stdout: 'notified python: status 204\n', stderr: '' });
  await waitUntil('the text', () => site.texts.some((text) => text.includes('nothing has failed')));
  await writeFile(join(site.directory, 'secret'), 'another secret');
  const bad = await runCommand('notify-test', 'python', '-c', site.config);
  assert.deepEqual([bad.code, bad.stderr], [1, 'nodepool-builder: python was not notified: status 401\n']);
  const unknown = await runCommand('notify-test', 'mail', '-c', site.config);
  assert.equal(unknown.code, 3);
  assert.match(unknown.stderr, /notification "mail" is not in .*nodepool\.yaml; choose one of: python/);
});
