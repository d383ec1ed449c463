import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { errorOf, idOf, startService } from '../fixtures/managed-service.ts';
import { docsImage, endAfter, provider } from '../fixtures/managed-site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

describe('the requests', () => {
  it('the command rollback returns to the previous build, and is rejected if there is none', async (t) => {
    const { site, process: service } = await startService(t);
    await runInProcess('rebuild', 'docs', '-c', site.config);
    await service.logged(/upload 0000000004-\w+ of docs-0000000003-\w+ to east is ready/);
    assert.equal((await runInProcess('rollback', 'docs', '-c', site.config)).code, 0);
    await service.logged(/deleted upload 0000000004-\w+ of docs-0000000003-\w+ to east/);
    const [status] = (await site.list('image-status')).filter((one) => one.provider === 'east');
    assert.match(status?.newest ?? '', /^docs-0000000001-/);
    assert.match(
      await errorOf('refused', site, 'rollback', 'docs'),
      /docs-0000000001-\w+ is the only good build of disk image "docs"; request a new build first/,
    );
    assert.match(
      await errorOf('not-found', site, 'rollback', 'dosc'),
      /disk image "dosc" has no image; dib-image-list lists/,
    );
  });

  it('a failed upload of an image that was rolled back no longer counts', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'hook-'));
    undoAfter(t, () => rm(directory, { recursive: true }));
    const hook = join(directory, 'hook');
    await writeFile(hook, '#!/bin/sh\ncase "$3" in *docs-0000000003*) exit 1;; esac\n', { mode: 0o755 });
    const { site, process: service } = await startService(t, {
      providers: [provider('east', { 'post-upload-hook': hook })],
    });
    await runInProcess('rebuild', 'docs', '-c', site.config);
    const inEast = async () => (await site.list('image-status')).find((one) => one.provider === 'east');
    await waitUntil('the failed upload', async () => (await inEast())?.state === 'failed');
    assert.equal((await runInProcess('rollback', 'docs', '-c', site.config)).code, 0);
    await service.logged(/deleted build docs-0000000003-/);
    const status = await inEast();
    assert.partialDeepStrictEqual(status, { state: 'ready', ready: 1, error: null });
    assert.match(String(status?.newest), /^docs-0000000001-/);
  });

  it('requests are rejected while no manager runs, and are not handled later', async (t) => {
    const { site, process: service } = await startService(t);
    await runInProcess('rebuild', 'docs', '-c', site.config);
    await service.logged(/upload 0000000004-\w+ of docs-0000000003-\w+ to east is ready/);
    const newest = await idOf(site, 'dib-image-list', 'image-id', '0000000003');
    const uploadId = await idOf(site, 'image-list', 'upload-id', '0000000004');
    await service.end('SIGKILL');
    for (const line of [
      'rebuild docs',
      'image-pause docs',
      'image-unpause docs',
      'rollback docs',
      `dib-image-delete ${newest}`,
      `upload-delete ${uploadId}`,
    ]) {
      assert.match(
        await errorOf('unreachable', site, ...line.split(' ')),
        /no manager runs; start "nodepool-builder manage", or the daemon with --all-in-one; nothing was requested/,
        line,
      );
    }
    for (const list of ['image-status', 'plan']) {
      const { code, stderr } = await runInProcess(list, '-c', site.config);
      assert.equal(code, 0);
      assert.match(stderr, /^nodepool-builder: no manager runs; start .*$/m, list);
    }
    const again = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    await again.logged(/elected leader/);
    assert.equal((await runInProcess('image-pause', 'docs', '-c', site.config)).code, 0);
    assert.equal((await site.list('dib-image-list')).filter(({ state }) => state === 'ready').length, 2);
  });

  it('the second of two concurrent rollbacks is rejected', async (t) => {
    const { site, process: service } = await startService(t);
    await runInProcess('rebuild', 'docs', '-c', site.config);
    await service.logged(/upload 0000000004-\w+ of docs-0000000003-\w+ to east is ready/);
    const both = await Promise.all([1, 2].map(() => runCommand('rollback', 'docs', '-c', site.config)));
    assert.deepEqual(
      both.map(({ code }) => code).toSorted((one, other) => one - other),
      [0, 4],
    );
    const withdrawn = (await site.list('dib-image-list')).filter((build) => build.withdrawn);
    assert.equal(withdrawn.length, 1);
  });

  it('the command rebuild builds what was written to the file before it, and once', async (t) => {
    const { site, process: service } = await startService(t);
    const options = { tree: join(import.meta.dirname, '../fixtures') };
    await site.configure({ providers: [provider('east')], diskimages: [docsImage({ options })] });
    const { code, stderr } = await runInProcess('rebuild', 'docs', '-c', site.config);
    assert.deepEqual(
      [code, stderr.replace(/-\w+ is/, ' is')],
      [0, 'build docs-0000000003 is queued; a builder starts it as soon as it is free\n'],
    );
    await service.logged(/upload 0000000004-\w+ of docs-0000000003-\w+ to east is ready/);
    const plan = await site.list('plan');
    assert.deepEqual(
      plan.filter(({ when }) => when === 'now'),
      [],
    );
    assert.equal((await site.list('dib-image-list')).length, 2);
  });

  it('the command image-pause stops builds until image-unpause, whatever the file says', async (t) => {
    const { site, process: service } = await startService(t);
    const run = async (...args: readonly string[]): Promise<string> => {
      const { code, stderr } = await runInProcess(...args, '-c', site.config);
      assert.equal(code, 0, stderr);
      return stderr;
    };
    assert.equal(await run('image-pause', 'docs'), 'disk image "docs" is paused\n');
    const paused = await site.list('image-status');
    assert.deepEqual(
      paused.map(({ paused: isPaused }) => isPaused),
      [true, true],
    );
    const [{ 'paused-by': by = '', 'paused-since': since = '' } = {}] = paused;
    assert.match(by, new RegExp(`^\\w+@${hostname()}$`));
    const table = await runInProcess('image-status', '-c', site.config);
    assert.match(table.stdout, new RegExp(` by ${by} since \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d\\s`));
    assert.equal(await run('image-pause', 'docs'), 'disk image "docs" is paused\n');
    assert.equal((await site.list('image-status'))[0]?.['paused-since'], since, 'the first pause counts');
    assert.match((await site.list('plan'))[0]?.reason ?? '', new RegExp(`^it is paused by ${by} since `));
    assert.match(
      await errorOf('refused', site, 'rebuild', 'docs'),
      /disk image "docs" is paused by .*; run "nodepool-builder image-unpause docs" first/,
    );
    assert.equal(await run('image-unpause', 'docs'), 'disk image "docs" is not paused\n');
    assert.equal(await run('image-unpause', 'docs'), 'disk image "docs" is not paused\n');
    assert.match(await run('rebuild', 'docs'), /^build docs-0000000003-\w+ is queued; a builder starts it/);
    await service.logged(/upload 0000000004-\w+ of docs-0000000003-\w+ to east is ready/);

    await site.configure({ providers: [provider('east')], diskimages: [docsImage({ pause: true })] });
    await service.logged(/reloaded .*nodepool\.yaml/);
    assert.match(await errorOf('refused', site, 'rebuild', 'docs'), /is paused by the configuration; run/);
    await run('image-unpause', 'docs');
    assert.match(await run('rebuild', 'docs'), /^build docs-0000000005-\w+ is queued; a builder starts it/);
    await service.logged(/upload 0000000006-\w+ of docs-0000000005-\w+ to east is ready/);
    assert.match(
      await errorOf('not-found', site, 'image-pause', 'dosc'),
      /disk image "dosc" is not in .*; choose one of: docs/,
    );
  });

  it('the command upload-delete deletes one upload, and the image is uploaded again if still configured', async (t) => {
    const { site, process: service } = await startService(t);
    const uploadId = await idOf(site, 'image-list', 'upload-id', '0000000002');
    assert.equal((await runInProcess('upload-delete', uploadId, '-c', site.config)).code, 0);
    await service.logged(new RegExp(`deleted upload ${uploadId} of `));
    await service.logged(/upload 0000000003-\w+ of docs-0000000001-\w+ to east is ready/);
    assert.match(
      await errorOf('not-found', site, 'upload-delete', uploadId),
      new RegExp(
        `upload ${uploadId} does not exist, or is neither ready nor missing; image-list lists all uploads`,
      ),
    );
  });

  it('the command dib-image-delete deletes a build everywhere', async (t) => {
    const { site, process: service } = await startService(t);
    await runInProcess('rebuild', 'docs', '-c', site.config);
    await service.logged(/upload 0000000004-\w+ of docs-0000000003-\w+ to east is ready/);
    const newest = await idOf(site, 'dib-image-list', 'image-id', '0000000003');
    assert.equal((await runInProcess('dib-image-delete', newest, '-c', site.config)).code, 0);
    await service.logged(new RegExp(`deleted build ${newest}`));
    await service.logged(new RegExp(`deleted upload \\S+ of ${newest} to east`));
    const files = [...(await site.uploaded('east')), ...(await site.built())];
    assert.deepEqual(
      files.filter((file) => file.includes(newest)),
      [],
    );
    assert.equal(files.length, 3, 'the build before is as it was');
    assert.match(
      await errorOf('not-found', site, 'dib-image-delete', 'docs-7'),
      /image docs-7 does not exist or is not ready; dib-image-list lists all images/,
    );
  });
});
