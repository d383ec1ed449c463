// Only in test:all: it waits for several builds.
import assert from 'node:assert/strict';
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { Client, Worker, WorkFailError } from '@nodepool-builder/gearman-node';
import { freePort } from '../../scripts/free-port.ts';
import { startBuilder } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { startGatedSite } from '../fixtures/gated-site.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const INSTALL = `#!/bin/bash
set -eu
echo "adding the data disk"
mount -t tmpfs none /absent/dir
echo "not reached"
`;

const REASON =
  '"disk-image-create" ended with exit code 255 in install.d/60-data-disk, saying: ' +
  'mount: mounting none on /absent/dir failed: No such file or directory; see "nodepool-builder logs ';

for (const embedded of [false, true]) {
  it(`a command prints the first error of disk-image-create, over ${embedded ? 'the embedded server' : 'gearmand'}`, async (t) => {
    const server = embedded ? undefined : await startGearmand();
    if (server !== undefined) undoAfter(t, () => server.stop());
    const port = server?.port ?? (await freePort());
    const site = await createSite(port);
    undoAfter(t, () => site.remove());
    const own = join(site.directory, 'elements');
    const variables = `{ELEMENTS_PATH: '${join(import.meta.dirname, '../elements')}:${own}', DIB_JOURNAL_SIZE: '4'}`;
    await site.configure(`
  - {name: data, elements: [mini-os, data-disk], formats: [raw], env-vars: ${variables}}`);
    await mkdir(join(own, 'data-disk/install.d'), { recursive: true });
    await writeFile(join(own, 'data-disk/install.d/60-data-disk'), INSTALL, { mode: 0o755 });
    const builder = await startBuilder(site.config, ...(embedded ? ['--embedded-gearmand'] : []));
    undoAfter(t, () => builder.end('SIGTERM'));

    const { code, stdout, stderr } = await runCommand(
      'image-build',
      'data',
      '--image-id',
      '1',
      '-c',
      site.config,
    );
    assert.deepEqual([code, stdout], [1, '']);
    assert.ok(stderr.includes(`image-build:data failed on ${hostname()}: ${REASON}`), stderr);
    await builder.logged(/build 1 of data failed: /);
    const inLog = builder.log.filter((line) => line.includes(REASON));
    assert.equal(inLog.length, 1, inLog.join('\n'));

    const client = new Client({ servers: [{ host: '127.0.0.1', port }] });
    undoAfter(t, () => client.close());
    for (const asks of [true, false]) {
      const job = client.submit('image-build:data', JSON.stringify({ 'image-id': '2', reason: asks }));
      const types: string[] = [];
      const failure = (async () => {
        for await (const { type } of job) types.push(type);
      })();
      await assert.rejects(job.result, { code: 'job-failed' });
      await failure.catch(() => {});
      assert.deepEqual(
        types.filter((type) => type !== 'status'),
        asks ? ['warning'] : [],
      );
      if (asks) assert.equal(types.at(-1), 'warning', 'nothing follows it but the end of the job');
    }
  });
}

it('a command prints the reason for a failed deletion, and the image stays', async (t) => {
  const site = await startGatedSite(t);
  await rm(site.gate);
  const run = (...args: readonly string[]) => runCommand(...args, '-c', site.config);
  assert.equal((await run('image-build', 'docs', '--image-id', 'docs-1')).code, 0);
  const record = join(site.images, '.nodepool-builder/deletes/docs-1');
  await mkdir(record); // blocks the first file that the builder writes
  const failed = await run('image-delete', 'docs-1');
  assert.equal(failed.code, 1);
  const reason = `EISDIR: illegal operation on a directory, open '${record}'`;
  assert.ok(failed.stderr.includes(`image-delete:docs-1 failed on ${hostname()}: ${reason}`), failed.stderr);
  await rmdir(record);
  const { code, stderr } = await run('image-delete', 'docs-1');
  assert.equal(code, 0, stderr);
});

it('a command quotes Gearman’s words about a builder that sends no reason', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  const worker = new Worker({ servers: [{ host: '127.0.0.1', port: server.port }] });
  undoAfter(t, () => worker.close());
  worker.setFunctions({ 'image-build:docs': () => Promise.reject(new WorkFailError('secret')) });
  await worker.registered();
  const { code, stderr } = await runCommand('image-build', 'docs', '-c', site.config);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^nodepool-builder: job H:\S+ of image-build:docs failed; see the worker's log for the reason$/m,
  );
});
