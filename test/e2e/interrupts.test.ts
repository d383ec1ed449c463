// Only in test:all: it waits for several builds and uploads.
import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { type TestContext, test } from 'node:test';
import { Worker } from '@nodepool-builder/gearman-node';
import { builderCommand } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { type GatedSite, startGatedSite } from '../fixtures/gated-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const ME = `${userInfo().username}@${hostname()}`;

interface Followed {
  readonly child: ChildProcessWithoutNullStreams;
  /** Waits for a text in the output of the command. */
  shown(text: RegExp): Promise<void>;
  /** Waits for the end of the command. Returns its exit code. */
  readonly code: Promise<number | null>;
}

function start(t: TestContext, file: string, args: readonly string[]): Followed {
  const child = spawn(file, args);
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = once(child, 'close').then(([exitCode]) => exitCode as number | null);
  const shown = async (text: RegExp): Promise<void> => {
    await waitUntil(`${text} in the output`, () => text.test(output));
  };
  return { child, shown, code };
}

function follow(t: TestContext, site: GatedSite, ...args: readonly string[]): Followed {
  return start(t, ...builderCommand(...args, '-c', site.config));
}

/** Work that ends only when its signal aborts. */
async function forever(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error)),
  );
}

/** Waits until a running build or upload has this text in its log. */
async function running(site: GatedSite, imageId: string): Promise<void> {
  await waitUntil(`the log of ${imageId}`, async () =>
    (await runCommand('logs', imageId, '-c', site.config)).stdout.includes('begun\n'),
  );
}

async function imagesOf(site: GatedSite): Promise<readonly string[]> {
  return (await readdir(site.images)).filter((name) => name.startsWith('docs')).toSorted();
}

test('the first Ctrl-C on a terminal shows where the build runs, and a second one cancels it', async (t) => {
  const site = await startGatedSite(t);
  const [file, args] = builderCommand('image-build', 'docs', '--image-id', 'docs-1', '-c', site.config);
  // Without exec, the same Ctrl-C could also end the shell.
  const terminal = start(t, 'script', ['-qec', ['exec', file, ...args].join(' '), '/dev/null']);
  await running(site, 'docs-1');
  terminal.child.stdin.write('\x03');
  const log = '"nodepool-builder logs docs-1 --follow" shows its log; Ctrl-C again cancels it';
  await terminal.shown(RegExp(`image-build:docs continues on ${hostname()}; ${log}\r\n`));
  assert.equal((await runCommand('logs', 'docs-1', '-c', site.config)).code, 0);
  terminal.child.stdin.write('\x03');
  await terminal.shown(RegExp(`image-build:docs was cancelled by ${ME}\r\n`));
  assert.equal(await terminal.code, 6);
  await site.builder.logged(RegExp(`build docs-1 of docs was cancelled by ${ME}`));
  assert.deepEqual(await imagesOf(site), []);
});

test('SIGINT leaves a build running, and so does SIGTERM, which ends the command', async (t) => {
  const site = await startGatedSite(t);
  const build = follow(t, site, 'image-build', 'docs', '--image-id', 'docs-1');
  await running(site, 'docs-1');
  build.child.kill('SIGINT');
  await build.shown(/image-build:docs continues on/);
  build.child.kill('SIGTERM');
  assert.equal(await build.code, 6);
  await build.shown(/stopped by SIGTERM/);
  await rm(site.gate);
  await site.builder.logged(/build docs-1 of docs \(job .*\): done/);
  assert.deepEqual(await imagesOf(site), ['docs-1.raw']);
});

test('the second SIGINT withdraws a build that still waits for a builder', async (t) => {
  const site = await startGatedSite(t);
  const first = follow(t, site, 'image-build', 'docs', '--image-id', 'docs-1');
  await running(site, 'docs-1');
  const second = follow(t, site, 'image-build', 'docs', '--image-id', 'docs-2');
  await second.shown(/image-build:docs: 0 %/);
  second.child.kill('SIGINT');
  await second.shown(/image-build:docs waits for a free builder; Ctrl-C again cancels it/);
  second.child.kill('SIGINT');
  assert.equal(await second.code, 6);
  await second.shown(RegExp(`image-build:docs was cancelled by ${ME} before a builder started it`));
  const third = follow(t, site, 'image-build', 'docs', '--image-id', 'docs-3');
  await third.shown(/image-build:docs: 0 %/);
  await rm(site.gate);
  assert.deepEqual([await first.code, await third.code], [0, 0]);
  assert.deepEqual(await imagesOf(site), ['docs-1.raw', 'docs-3.raw']);
});

test('the second SIGINT cancels an upload', async (t) => {
  const site = await startGatedSite(t);
  await rm(site.gate);
  assert.equal((await runCommand('image-build', 'docs', '--image-id', 'docs-1', '-c', site.config)).code, 0);
  await writeFile(site.gate, '');
  const upload = follow(t, site, 'image-upload', 'docs-1', '--provider', 'pool', '--image-name', 'docs');
  await upload.shown(/image-upload:docs-1: 100 %/);
  upload.child.kill('SIGINT');
  await upload.shown(
    /image-upload:docs-1 continues on \S+; "nodepool-builder logs docs-1 --upload \S+ --follow"/,
  );
  upload.child.kill('SIGINT');
  assert.equal(await upload.code, 6);
  await upload.shown(RegExp(`image-upload:docs-1 was cancelled by ${ME}`));
  await site.builder.logged(/upload of docs-1 to pool.*: discarded, because its job was cancelled/);
  assert.deepEqual(
    (await readdir(site.pool)).filter((name) => name.startsWith('docs')),
    [],
  );
});

test('a build that its builder cannot cancel continues, and a third SIGINT ends the command', async (t) => {
  const site = await startGatedSite(t);
  const worker = new Worker({ servers: [{ host: '127.0.0.1', port: site.port }] });
  undoAfter(t, () => worker.close({ signal: AbortSignal.abort() }));
  worker.setFunctions({
    'image-build:other': (job) => {
      job.sendStatus(1, 2);
      return new Promise((_, reject) =>
        job.signal.addEventListener('abort', () => reject(job.signal.reason)),
      );
    },
  });
  await worker.registered();
  const build = follow(t, site, 'image-build', 'other', '--image-id', 'other-1');
  await build.shown(/image-build:other: 50 %/);
  build.child.kill('SIGINT');
  await build.shown(/image-build:other continues on its builder; /);
  build.child.kill('SIGINT');
  await build.shown(/build other-1 was not cancelled: /);
  build.child.kill('SIGINT');
  assert.equal(await build.code, 6);
  await build.shown(/stopped by SIGINT/);
});

test('an upload is cancelled even if no builder reports where it runs', async (t) => {
  const site = await startGatedSite(t);
  const worker = new Worker({ servers: [{ host: '127.0.0.1', port: site.port }], concurrency: 2 });
  undoAfter(t, () => worker.close({ signal: AbortSignal.abort() }));
  const end = Promise.withResolvers<never>();
  end.promise.catch(() => {});
  let handle: string | undefined;
  let argument: unknown;
  worker.setFunctions({
    'image-upload:other-1': async (job) => {
      handle = job.handle;
      job.sendStatus(1, 2);
      return await end.promise;
    },
    'image-cancel:other-1': ({ payload }) => {
      argument = JSON.parse(payload.toString());
      end.reject(new Error('stopped'));
      return '';
    },
  });
  await worker.registered();
  const upload = follow(t, site, 'image-upload', 'other-1', '--provider', 'pool', '--image-name', 'docs');
  await upload.shown(/image-upload:other-1: 50 %/);
  upload.child.kill('SIGINT');
  await upload.shown(/image-upload:other-1 continues on its builder; /);
  upload.child.kill('SIGINT');
  assert.notEqual(await upload.code, 0);
  assert.deepEqual(argument, { by: ME, 'upload-id': handle });
});

test('a third SIGINT ends the command at once, also while the builder does not respond', async (t) => {
  const site = await startGatedSite(t);
  const worker = new Worker({ servers: [{ host: '127.0.0.1', port: site.port }], concurrency: 2 });
  undoAfter(t, () => worker.close({ signal: AbortSignal.abort() }));
  const asked = Promise.withResolvers<void>();
  worker.setFunctions({
    'image-build:other': (job) => {
      job.sendStatus(1, 2);
      return forever(job.signal);
    },
    'image-cancel:other-1': (job) => {
      asked.resolve();
      return forever(job.signal);
    },
  });
  await worker.registered();
  const build = follow(t, site, 'image-build', 'other', '--image-id', 'other-1');
  await build.shown(/image-build:other: 50 %/);
  build.child.kill('SIGINT');
  await build.shown(/image-build:other continues on its builder; /);
  build.child.kill('SIGINT');
  await asked.promise;
  const begun = performance.now();
  build.child.kill('SIGINT');
  assert.equal(await build.code, 6);
  const limit = 10_000; // for the builder's response
  assert.ok(performance.now() - begun < limit / 2);
});
