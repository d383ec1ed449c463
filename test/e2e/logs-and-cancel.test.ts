import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from '@nodepool-builder/gearman-node';
import { builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { startGatedSite } from '../fixtures/gated-site.ts';
import { createManagedSite, endAfter, provider } from '../fixtures/managed-site.ts';
import { temporaryDirectory } from '../fixtures/temporary-directory.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { MAY_ACT, startWebSite } from '../fixtures/web-site.ts';

const ME = `${userInfo().username}@${hostname()}`;

test('the command logs shows a running build’s and an upload’s log, from another host', async (t) => {
  const site = await startGatedSite(t);
  const build = runCommand('image-build', 'docs', '--image-id', 'docs-1', '-c', site.config);
  await waitUntil('the first line', async () =>
    (await runCommand('logs', 'docs-1', '-c', site.config)).stdout.includes('begun\n'),
  );
  const running = await runCommand('logs', 'docs', '-c', site.config);
  assert.deepEqual([running.code, running.stderr], [0, 'log of build docs-1:\n']);
  assert.match(running.stdout, /begun\n$/);
  const [command, args] = builderCommand('logs', '--follow', 'docs-1', '-c', site.config);
  const follow = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let shown = '';
  follow.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  await waitUntil('the existing line', () => shown.endsWith('begun\n'));
  const closed = once(follow, 'close');
  await rm(site.gate);
  assert.deepEqual(await closed, [0, null]);
  assert.match(shown, /^# image-name: "docs"\n# image-id: docs-1\n(?:.*\n)*begun\ndone\n$/);
  assert.equal((await build).code, 0);
  const newest = await runCommand('image-build', 'docs', '-c', site.config);
  assert.equal(newest.code, 0, newest.stderr);
  const ofName = await runCommand('logs', 'docs', '-c', site.config);
  assert.equal(ofName.stderr, `log of build ${newest.stdout.trim()}:\n`);
  assert.match(ofName.stdout, /^# image-name: "docs"\n(?:.*\n)*done\n$/);

  const client = new Client({ servers: [{ host: '127.0.0.1', port: site.port }] });
  undoAfter(t, () => client.close());
  const argument = '{"provider": "pool", "image-name": "docs"}';
  const uploadLog = async (unique: string): Promise<string> => {
    await client.submit('image-upload:docs-1', argument, { unique }).result.catch(() => {});
    return (await runCommand('logs', 'docs-1', '--upload', unique, '-c', site.config)).stdout;
  };
  assert.match(await uploadLog('upload/1'), /^\S+ \S+ image docs-1 has the external-id docs-docs-1\.qcow2$/m);
  await rm(site.pool, { recursive: true });
  assert.match(await uploadLog('upload 2'), /^\S+ \S+ failed: .*; create the directory/m);

  const unknown = await runCommand('logs', '../docs-1', '-c', site.config);
  assert.equal(unknown.code, 3);
  assert.match(
    unknown.stderr,
    /no builder has a log of image \.\.\/docs-1; compare the id with "image-list"/,
  );
});

test('the command logs names the newest build, and says that the builder with its log is away', async (t) => {
  const site = await createManagedSite(t);
  const service = endAfter(t, await startBuilder(site.config, '--all-in-one'));
  await service.logged(/build docs-\S+ is ready/);
  await service.end('SIGTERM');
  await site.configure({ 'images-dir': 'other' });
  await mkdir(join(site.directory, 'other'));
  endAfter(t, await startBuilder(site.config, '--embedded-gearmand'));
  const { code, stderr } = await runCommand('logs', 'docs', '-c', site.config);
  assert.equal(code, 3);
  assert.match(stderr, /: docs-\d+-\S+: no builder offers it now; start the one that has its files$/m);
});

test('the command cancel stops a build, which leaves nothing, and its client learns who cancelled it', async (t) => {
  const site = await startGatedSite(t);
  const build = runCommand('image-build', 'docs', '--image-id', 'docs-1', '-c', site.config);
  await waitUntil('the build', async () =>
    (await runCommand('logs', 'docs-1', '-c', site.config)).stdout.includes('begun\n'),
  );
  const cancel = await runCommand('cancel', 'docs-1', '-c', site.config);
  assert.deepEqual([cancel.code, cancel.stdout, cancel.stderr], [0, 'build docs-1 is cancelled\n', '']);
  const { code, stderr } = await build;
  assert.equal(code, 6);
  assert.match(stderr, RegExp(`image-build:docs was cancelled by ${ME}$`, 'm'));
  assert.deepEqual(await readdir(join(site.images, '.nodepool-builder/staging')), []);
  assert.deepEqual(
    (await readdir(site.images)).filter((name) => name.startsWith('docs')),
    [],
  );
  const again = await runCommand('cancel', 'docs-1', '-c', site.config);
  assert.equal(again.code, 3);
  assert.match(again.stderr, /no builder runs a build or an upload with the id docs-1/);
});

test('a cancelled build is cancelled in the manager’s records, and the manager builds again when it is due', async (t) => {
  const site = await createManagedSite(t);
  const gate = join(site.directory, 'gate');
  await writeFile(gate, '');
  const script = `while [ -e '${gate}' ]; do sleep 0.1; done`;
  await site.configure({
    diskimages: [{ name: 'docs', builder: 'command', formats: ['raw'], command: ['sh', '-c', script] }],
  });
  const service = endAfter(t, await startBuilder(site.config, '--all-in-one'));
  const imageId = await waitUntil('a running build', async () => {
    const [build] = await site.list('dib-image-list');
    return build?.host === hostname() && String(build['image-id']);
  });
  assert.equal((await runCommand('cancel', imageId, '-c', site.config)).code, 0);
  const [build] = await waitUntil('the record of the ended build', async () => {
    const builds = await site.list('dib-image-list');
    return builds[0]?.state !== 'building' && builds;
  });
  assert.equal(build?.state, 'cancelled');
  assert.equal(service.log.filter((line) => /was cancelled by/.test(line)).length, 1);
  assert.equal(build.error, `cancelled by ${ME} (on ${hostname()})`);
  const [status] = await site.list('image-status');
  assert.equal(status?.state, 'cancelled');
  const [next, ...others] = await site.list('plan');
  assert.deepEqual(others, []);
  assert.equal(next?.what, 'build');
  assert.match(
    String(next.reason),
    RegExp(`^the last build was cancelled by ${ME}; the cancelled build, .*, reaches rebuild-age, `),
  );
  const due = Date.parse(String(build.requested)) + 86_400_000;
  assert.equal(Date.parse(String(next.when)), due, 'by its rebuild-age');
});

test('the command cancel and the API withdraw a build that waits for a builder, and nothing runs afterwards', async (t) => {
  const gate = join(await temporaryDirectory(t), 'gate');
  await writeFile(gate, '');
  const script = `while [ -e '${gate}' ]; do sleep 0.1; done; truncate -s 1M "$1"`;
  const command = ['sh', '-c', script, 'sh', '{output.raw}'];
  const site = await startWebSite(t, {
    diskimages: ['docs', 'more'].map((name) => ({ name, builder: 'command', formats: ['raw'], command })),
    providers: [],
  });
  const cancel = async (id: string): Promise<readonly unknown[]> => {
    const { code, stdout, stderr } = await runCommand('cancel', id, '-c', site.config);
    return [code, stdout, stderr];
  };
  const builds = await waitUntil('a running build', async () => {
    const found = await site.list('dib-image-list');
    return found.length === 2 && found.some(({ host }) => host === hostname()) && found;
  });
  const waiting = builds.find(({ host }) => host === null) ?? assert.fail();
  const running = builds.find(({ host }) => host !== null) ?? assert.fail();
  const path = `/builds/${waiting['image-id']}/cancel`;
  assert.deepEqual(await site.api(path, { method: 'POST', headers: MAY_ACT }), {
    status: 202,
    body: { done: `build ${waiting['image-id']} is cancelled` },
  });
  const stateOf = async (id: string | undefined): Promise<string | undefined> =>
    (await site.list('dib-image-list')).find((build) => build['image-id'] === id)?.state;
  assert.equal(await stateOf(waiting['image-id']), 'cancelled');
  assert.equal(await stateOf(running['image-id']), 'building');

  const image = running.diskimage ?? '';
  assert.deepEqual(await cancel(image), [0, `build ${running['image-id']} is cancelled\n`, '']);
  await waitUntil('the cancelled build', async () => (await stateOf(running['image-id'])) === 'cancelled');
  assert.equal((await cancel(image))[0], 3);
  assert.equal((await cancel(waiting['image-id'] ?? ''))[0], 3);
  await rm(gate);
  assert.deepEqual(await site.list('image-list', '--offered'), []);
  assert.equal(site.service.log.filter((line) => /BuildWorker: build of \w+: image/.test(line)).length, 1);
});

test('the command cancel withdraws an upload that waits for a builder', async (t) => {
  const site = await createManagedSite(t);
  const [gate, hook] = [join(site.directory, 'gate'), join(site.directory, 'hook')];
  await writeFile(gate, '');
  await writeFile(hook, `#!/bin/sh\nwhile [ -e '${gate}' ]; do sleep 0.1; done\n`, { mode: 0o755 });
  await site.configure({
    providers: ['east', 'west'].map((name) => provider(name, { 'post-upload-hook': hook })),
  });
  const service = endAfter(t, await startBuilder(site.config, '--all-in-one', '--upload-workers', '1'));
  const uploads = await waitUntil('a running upload', async () => {
    const found = await site.list('image-list');
    return found.length === 2 && found.some(({ host }) => host === hostname()) && found;
  });
  const waiting = uploads.find(({ host }) => host === null) ?? assert.fail();
  const running = uploads.find(({ host }) => host !== null) ?? assert.fail();
  for (const args of [[running['upload-id']], ['docs', '--upload', running['upload-id']]]) {
    const log = await runCommand('logs', ...args.map(String), '-c', site.config);
    assert.deepEqual([log.code, log.stderr], [0, '']);
  }
  const id = waiting['upload-id'] ?? '';
  const { code, stdout, stderr } = await runCommand('cancel', id, '-c', site.config);
  assert.deepEqual([code, stdout, stderr], [0, `upload ${id} is cancelled\n`, '']);
  await rm(gate);
  await service.logged(RegExp(`upload ${running['upload-id']} of \\S+ to ${running.provider} is ready`));
  const log = await runCommand('logs', String(running['upload-id']), '-c', site.config);
  assert.deepEqual([log.code, log.stderr], [0, '']);
  assert.match(log.stdout, /has the external-id/);
  const states = (await site.list('image-list')).map(({ provider: name, state }) => [name, state]);
  assert.deepEqual(Object.fromEntries(states), {
    [running.provider ?? '']: 'ready',
    [waiting.provider ?? '']: 'cancelled',
  });
  const plan = await site.list('plan');
  const wait = plan.find(({ subject }) => subject?.includes(waiting.provider ?? ''));
  assert.match(
    String(wait?.reason),
    RegExp(`; its upload was cancelled by ${ME}; the next build is uploaded$`),
  );
  assert.deepEqual(await site.uploaded(waiting.provider === 'east' ? 'east' : 'west'), []);
});
