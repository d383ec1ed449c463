import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DirectorySite } from './directory-site.ts';

let site: DirectorySite;

beforeEach(async () => {
  site = await DirectorySite.create();
});
afterEach(() => site.remove());

describe('a crash', () => {
  /** Kills an uploading process right before it renames a file to its public name. */
  const killedBefore = (name: string): void => {
    const script = `
      import fs from 'node:fs/promises';
      import { syncBuiltinESMExports } from 'node:module';
      const { rename } = fs;
      fs.rename = async (from, to) => {
        if (to === process.env.STOP_AT) process.kill(process.pid, 'SIGKILL');
        await rename(from, to);
      };
      syncBuiltinESMExports();
      const { DirectoryProvider } = await import(process.env.PROVIDER);
      const provider = new DirectoryProvider({ name: 'pool', directory: process.env.POOL });
      await provider.upload(JSON.parse(process.env.REQUEST));
    `;
    const path = join(site.root, '0001.qcow2');
    const file = { format: 'qcow2', path, size: 'image 0001'.length };
    const { signal, stderr } = spawnSync(
      process.execPath,
      [...process.execArgv.filter((arg) => !arg.startsWith('--test')), '--input-type=module', '-e', script],
      {
        encoding: 'utf8',
        env: {
          ...process.env,
          STOP_AT: join(site.pool, name),
          POOL: site.pool,
          PROVIDER: new URL('../../src/directory/directory-provider.ts', import.meta.url).href,
          REQUEST: JSON.stringify({ uploadId: 'upload-0001', imageId: '0001', imageName: 'debian', file }),
        },
      },
    );
    assert.equal(signal, 'SIGKILL', stderr);
  };

  for (const name of ['debian-0001.qcow2.json', 'debian-0001.qcow2']) {
    it(`a crash before ${name} is named leaves no image without a manifest, and nothing after a discard`, async () => {
      await site.imageFile('0001', '2016-05-01');
      killedBefore(name);
      const left = await readdir(site.pool);
      assert.ok(
        left.some((file) => file.endsWith('.part')),
        left.join(),
      );
      assert.ok(!left.includes('debian-0001.qcow2'), left.join());
      assert.deepEqual(await site.provider.list(), []);
      const partialUploads = await site.provider.listPartialUploads();
      assert.ok(partialUploads.every(({ uploadId }) => uploadId === 'upload-0001'));
      assert.equal(partialUploads.length, left.length);
      await site.provider.discard('upload-0001');
      assert.deepEqual(await readdir(site.pool), []);
    });

    it(`a crash before ${name} is named is repaired by the next attempt, or by removing partial uploads`, async () => {
      await site.imageFile('0001', '2016-05-01');
      killedBefore(name);
      for (const partialUpload of await site.provider.listPartialUploads())
        assert.equal(await partialUpload.remove(), true);
      assert.deepEqual(await readdir(site.pool), []);
      killedBefore(name);
      await site.upload('0001', '2016-05-01');
      assert.deepEqual((await readdir(site.pool)).toSorted(), [
        'debian-0001.qcow2',
        'debian-0001.qcow2.json',
        'debian-latest.qcow2',
      ]);
    });
  }

  it('a crash during a deletion leaves a manifest that is listed as a partial upload', async () => {
    await site.upload('0001', '2016-05-01');
    await rm(join(site.pool, 'debian-0001.qcow2'));
    const [partialUpload] = await site.provider.listPartialUploads();
    assert.equal(partialUpload?.subject, 'file debian-0001.qcow2.json');
    await partialUpload?.remove();
    assert.ok(!(await readdir(site.pool)).includes('debian-0001.qcow2.json'));
  });
});
