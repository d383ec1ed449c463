import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort } from '../../scripts/free-port.ts';
import { type BuilderProcess, builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import {
  createManagedSite,
  docsImage,
  endAfter,
  type ManagedSite,
  provider,
} from '../fixtures/managed-site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const HOST = hostname();

interface SlowSite extends ManagedSite {
  readonly process: BuilderProcess;
  /** File that makes builds wait while it exists. */
  readonly buildGate: string;
  /** File that makes uploads wait while it exists. */
  readonly uploadGate: string;
  /** Returns the output of a command without `--json`. */
  table(...args: readonly string[]): Promise<string>;
}

/** Returns a line of a shell script that waits while a file exists. */
function untilOpen(gate: string): string {
  return `while [ -e '${gate}' ]; do sleep 0.1; done`;
}

/** Starts a site with `--all-in-one`, whose builds and uploads wait. */
async function startSlowSite(t: TestContext): Promise<SlowSite> {
  const site = await createManagedSite(t);
  const [buildGate, uploadGate, hook] = ['build-gate', 'upload-gate', 'hook'].map((name) =>
    join(site.directory, name),
  ) as [string, string, string];
  await writeFile(hook, `#!/bin/sh\n${untilOpen(uploadGate)}\n`, { mode: 0o755 });
  await writeFile(buildGate, '');
  await writeFile(uploadGate, '');
  const script = `sleep 3; ${untilOpen(buildGate)}; truncate -s 1M "$1"`;
  await site.configure({
    diskimages: [
      {
        name: 'docs',
        builder: 'command',
        command: ['sh', '-c', script, 'sh', '{output.raw}'],
        formats: ['raw'],
      },
    ],
    providers: [provider('east', { 'post-upload-hook': hook, 'image-type': 'raw' })],
  });
  const process = endAfter(t, await startBuilder(site.config, '--all-in-one'));
  const table = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runInProcess(...args, '-c', site.config);
    assert.deepEqual([code, stderr], [0, '']);
    return stdout;
  };
  return { ...site, process, buildGate, uploadGate, table };
}

test('the lists show the progress of running builds and uploads', async (t) => {
  const site = await startSlowSite(t);
  const builds = await waitUntil('a running build', async () => {
    const found = await site.list('dib-image-list');
    return found[0]?.host === HOST && found;
  });
  assert.partialDeepStrictEqual(builds, [
    { state: 'building', percent: 0, 'bytes-per-second': null, 'seconds-left': null, host: HOST },
  ]);
  assert.match(
    await site.table('dib-image-list'),
    new RegExp(`^IMAGE-ID +STATE +PROGRESS +AGE +REASON\\n.* building +0 % on ${HOST} `),
  );
  const [building] = await site.list('image-list', '--offered');
  assert.deepEqual(building?.running, [`build on ${HOST}: 0 %`]);

  await rm(site.buildGate);
  await waitUntil('a running upload', async () => (await site.list('image-list'))[0]?.host === HOST);
  await waitUntil('the hook', async () => Number((await site.list('image-list'))[0]?.percent) === 100);
  assert.match(
    await site.table('image-list'),
    new RegExp(`STATE +PROGRESS [^]* uploading +100 % on ${HOST} `),
  );
  assert.doesNotMatch(await site.table('dib-image-list'), /PROGRESS/);
  assert.match(await site.table('image-list', '--offered'), new RegExp(`upload to east on ${HOST}: 100 %`));

  await site.process.end('SIGKILL');
  const started = performance.now();
  const { code, stdout, stderr } = await runInProcess('image-list', '--json', '-c', site.config);
  assert.equal(code, 0);
  assert.match(stderr, /no job server responds at .*; the list shows only what the manager recorded\n$/);
  assert.partialDeepStrictEqual(JSON.parse(stdout), [
    { state: 'uploading', percent: null, host: null, waiting: 'a reply from a job server' },
  ]);
  assert.ok(performance.now() - started < 5000, 'without a job server, the list is not slow');
});

test('a waiting build is shown as queued with the reason, in lists, on the page and to its followers', async (t) => {
  const site = await createManagedSite(t);
  const gate = join(site.directory, 'gate');
  await writeFile(gate, '');
  const command = ['sh', '-c', `${untilOpen(gate)}; truncate -s 1M "$1"`, 'sh', '{output.raw}'];
  const diskimages = ['first', 'second'].map((name) => ({ name, builder: 'command', command }));
  await site.configure({ diskimages, providers: [] });
  const service = endAfter(t, await startBuilder(site.config, '--all-in-one', '--web', '0'));
  const [url = ''] = /http\S+/.exec(await service.logged(/status page at http/)) ?? [];
  const { running, queued } = await waitUntil('a running and a waiting build', async () => {
    const found = await site.list('dib-image-list');
    const [first] = found.filter(({ host }) => host === HOST);
    const [second] = found.filter((build) => build.waiting?.startsWith('a free builder; '));
    return first !== undefined && second !== undefined && { running: first, queued: second };
  });
  const waiting = `a free builder; ${HOST} is working on ${running['image-id']}`;
  assert.partialDeepStrictEqual(queued, { state: 'queued', percent: null, host: null, waiting });
  const { stdout: table } = await runInProcess('dib-image-list', '-c', site.config);
  assert.match(
    table,
    RegExp(`${queued['image-id']} +queued [^]*waiting for a free builder; ${HOST} is working on`),
  );
  const status = (await site.list('image-status')).find(({ state }) => state === 'queued');
  assert.partialDeepStrictEqual(status, { provider: null, error: null, waiting });
  const log = await runCommand('logs', String(queued['image-id']), '-c', site.config);
  assert.match(
    log.stderr,
    RegExp(`${queued['image-id']} is queued, waiting for ${waiting}; it has no log before`),
  );
  const page = await (await fetch(url)).text();
  assert.match(
    page,
    RegExp(`<span class="badge queued">queued</span>[^]*waiting for a free builder; ${HOST} is working on`),
  );

  const { promise: shown, resolve } = Promise.withResolvers<string>();
  const [program, args] = builderCommand('image-build', 'second', '-c', site.config);
  const follower = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => follower.kill('SIGKILL'));
  follower.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (text.includes('waiting')) resolve(text);
  });
  assert.match(await shown, /image-build:second: 0 %, waiting for a free builder/);
});

test('an upload to a cloud that is down shows why it is retried, when, and which attempt follows', async (t) => {
  const port = await freePort();
  const site = await createManagedSite(t, {
    diskimages: [docsImage()],
    providers: [
      {
        name: 'down',
        'auth-url': `http://127.0.0.1:${port}/v3`,
        username: 'builder',
        password: 'secret',
        'project-name': 'images',
        'image-type': 'raw',
        images: [{ name: 'docs', diskimage: 'docs' }],
      },
    ],
  });
  endAfter(t, await startBuilder(site.config, '--all-in-one'));
  const upload = await waitUntil('a retry', async () => {
    const [found] = await site.list('image-list');
    return found?.retrying != null && found;
  });
  assert.equal(upload.state, 'uploading');
  assert.match(
    String(upload.retrying),
    RegExp(`^attempt [2-6] of 6, after .*127.0.0.1:${port}.*ECONNREFUSED`),
  );
  assert.ok(Date.parse(String(upload['retry-at'])) > Date.parse(String(upload.requested)));
  const { stdout: table } = await runInProcess('image-list', '-c', site.config);
  assert.match(table, /progress: 0 % on \S+, retrying( in \d+ s)?: attempt [2-6] of 6, after/);
  const log = await runCommand(
    'logs',
    String(upload['image-id']),
    '--upload',
    String(upload['upload-id']),
    '-c',
    site.config,
  );
  assert.match(log.stdout, RegExp(`retrying in \\d+\\.\\d s \\(attempt 2 of 6\\): .*127.0.0.1:${port}`));
});

test('a build’s followers see the time change, and the time left if the same was built before', async (t) => {
  const site = await startSlowSite(t);
  await Promise.all([site.buildGate, site.uploadGate].map((gate) => rm(gate)));
  await site.process.logged(/upload .* to east is ready/);
  await writeFile(site.buildGate, '');

  const command = builderCommand('image-build', 'docs', '-c', site.config).flat().join(' ');
  const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => terminal.kill());
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  await waitUntil('the percentage based on the last build', () => /[1-9]\d* % \| 0:\d\d:\d\d/.test(shown));
  const before = shown.length;
  await waitUntil('the next second', () => /\| 0:\d\d:\d\d/.test(shown.slice(before)));
  const closed = once(terminal, 'close'); // with all of its output
  await rm(site.buildGate);
  const [code] = await closed;
  assert.equal(code, 0, shown);
  assert.match(shown, / 100 % \| 0:\d\d:\d\d/);
});
