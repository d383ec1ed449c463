import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DirectoryProvider } from '../../src/directory/directory-provider.ts';
import { checksumsOf, DirectorySite, errorOf } from './directory-site.ts';

let site: DirectorySite;

beforeEach(async () => {
  site = await DirectorySite.create();
});
afterEach(() => site.remove());

describe('an upload to a directory', () => {
  for (const umask of [0, 0o22, 0o77]) {
    it(`an upload to a directory leaves files readable by all and writable by their owner, with umask 0${umask.toString(8)}`, async (t) => {
      const before = process.umask(umask);
      t.after(() => process.umask(before));
      const externalId = await site.upload('0001', '2016-05-01');
      for (const name of [externalId, `${externalId}.json`]) {
        assert.equal((await stat(join(site.pool, name))).mode & 0o777, 0o644, name);
      }
    });
  }

  it('two uploads of one image to a directory end with the later one, which a discard of the earlier one keeps', async () => {
    const image = { imageId: '0001', imageName: 'debian' };
    const large = await site.imageFile('large', '2016-05-01', 'x'.repeat(2 ** 26));
    const small = await site.imageFile('small', '2016-05-01');
    // Side by side, the earlier upload would end last, because it takes longer.
    await Promise.all([
      site.provider.upload({ ...image, uploadId: 'earlier', file: large }),
      site.provider.upload({ ...image, uploadId: 'later', file: small }),
    ]);
    await site.provider.discard('earlier');
    assert.deepEqual(
      (await site.provider.list()).map(({ uploadId }) => uploadId),
      ['later'],
    );
    assert.equal(await readFile(join(site.pool, 'debian-0001.qcow2'), 'utf8'), 'image small');
  });

  it('an upload to a directory ends if its id is the name of its file', { timeout: 30_000 }, async () => {
    const file = await site.imageFile('0001', '2016-05-01');
    const uploadId = 'debian-0001.qcow2';
    const { externalId } = await site.provider.upload({
      uploadId,
      imageId: '0001',
      imageName: 'debian',
      file,
    });
    assert.equal(externalId, uploadId);
  });

  it('a discard keeps the image of a later upload that another process ends in the meantime', async () => {
    await site.upload('0001', '2016-05-01');
    const file = await site.imageFile('other', '2016-05-01');
    const later = { uploadId: 'later', imageId: '0001', imageName: 'debian', file };
    class SlowProvider extends DirectoryProvider {
      protected override async listImages(): ReturnType<DirectoryProvider['listImages']> {
        const images = await super.listImages();
        await site.provider.upload(later);
        return images;
      }
    }
    await new SlowProvider({ name: 'pool', directory: site.pool }).discard('upload-0001');
    assert.deepEqual(
      (await site.provider.list()).map(({ uploadId }) => uploadId),
      ['later'],
    );
    assert.equal(await readlink(join(site.pool, 'debian-latest.qcow2')), 'debian-0001.qcow2');
  });

  it('an upload to a directory leaves the image, a manifest that verifies it, and the link to the latest', async () => {
    assert.equal(await site.upload('0001', '2016-05-01'), 'debian-0001.qcow2');
    assert.deepEqual((await readdir(site.pool)).toSorted(), [
      'debian-0001.qcow2',
      'debian-0001.qcow2.json',
      'debian-latest.qcow2',
    ]);
    assert.equal(await readFile(join(site.pool, 'debian-latest.qcow2'), 'utf8'), 'image 0001');
    const manifest = JSON.parse(await readFile(join(site.pool, 'debian-0001.qcow2.json'), 'utf8'));
    assert.deepEqual(
      { ...manifest, uploaded: undefined },
      {
        'image-id': '0001',
        'image-name': 'debian',
        'upload-id': 'upload-0001',
        format: 'qcow2',
        size: 'image 0001'.length,
        ...checksumsOf('image 0001'),
        built: '2016-05-01T00:00:00.000Z',
        uploaded: undefined,
        metadata: { os: 'debian' },
      },
    );
    assert.equal(
      spawnSync('sha256sum', ['-c'], { cwd: site.pool, input: `${manifest.sha256}  debian-0001.qcow2\n` })
        .status,
      0,
    );
  });

  it('an upload to a directory keeps the link on the newest build, in any order of uploads and deletions', async () => {
    const latest = join(site.pool, 'debian-latest.qcow2');
    await Promise.all([
      site.upload('0002', '2016-05-02'),
      site.upload('0001', '2016-05-01'),
      site.upload('0009', '2016-05-09', 'centos'),
    ]);
    assert.equal(await readlink(latest), 'debian-0002.qcow2');
    await site.provider.delete('debian-0002.qcow2');
    assert.equal(await readlink(latest), 'debian-0001.qcow2');
    await site.provider.delete('debian-0001.qcow2');
    assert.deepEqual((await readdir(site.pool)).toSorted(), [
      'centos-0009.qcow2',
      'centos-0009.qcow2.json',
      'centos-latest.qcow2',
    ]);
  });

  it('an upload to a directory rejects a file that differs from what was built, and leaves nothing', async () => {
    const file = await site.imageFile('0001', '2016-05-01');
    await writeFile(file.path, 'another image');
    const error = await errorOf(
      site.provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file }),
    );
    assert.equal(error.code, 'provider-refused');
    assert.match(error.message, /0001\.qcow2 differs from what the builder made.*build the image again/);
    assert.deepEqual(await readdir(site.pool), []);
  });

  it('an upload to a directory does not replace another image with the same file name', async () => {
    await site.upload('b-c', '2016-05-01', 'a');
    const file = await site.imageFile('c', '2016-05-01');
    const error = await errorOf(
      site.provider.upload({ uploadId: 'u1', imageId: 'c', imageName: 'a-b', file }),
    );
    assert.match(error.message, /a-b-c\.qcow2 is already image b-c of a/);
    assert.equal(await readFile(join(site.pool, 'a-b-c.qcow2'), 'utf8'), 'image b-c');
  });

  it('an upload to a directory rejects an image name that is not a file name', async () => {
    const file = await site.imageFile('c', '2016-05-01');
    const error = await errorOf(
      site.provider.upload({ uploadId: 'u1', imageId: 'c', imageName: '../up', file }),
    );
    assert.equal(error.code, 'provider-refused');
    assert.deepEqual(await readdir(site.pool), []);
  });

  it('an upload to a directory removes an earlier attempt’s temporary files on any host, and no others', async () => {
    const left = '.upload-upload-0001.00000000.part';
    const others = ['.upload-another.00000000.part', '.upload-host.1.00000000.part', '.profile'];
    for (const name of [left, ...others]) await writeFile(join(site.pool, name), 'half an image');
    await site.upload('0001', '2016-05-01');
    const hidden = (await readdir(site.pool)).filter((name) => name.startsWith('.'));
    assert.deepEqual(hidden.toSorted(), others.toSorted());
  });

  for (const name of ['debian-0001.qcow2', 'debian-0001.qcow2.json', 'debian-latest.qcow2']) {
    it(`an upload to a directory does not replace a foreign file called ${name}`, async () => {
      await writeFile(join(site.pool, name), 'precious');
      const error = await errorOf(site.upload('0001', '2016-05-01'));
      assert.equal(error.code, 'provider-refused');
      assert.match(error.message, new RegExp(`${name} was not made by this software.*move it away`));
      assert.deepEqual(await readdir(site.pool), [name]);
      assert.equal(await readFile(join(site.pool, name), 'utf8'), 'precious');
    });
  }

  it('an upload to a directory does not replace a file that appears during the copy', async () => {
    const file = await site.imageFile('0001', '2016-05-01', 'x'.repeat(2 * 1024 * 1024));
    const onProgress = (): void => writeFileSync(join(site.pool, 'debian-0001.qcow2'), 'precious');
    const error = await errorOf(
      site.provider.upload({ uploadId: 'u1', imageId: '0001', imageName: 'debian', file }, { onProgress }),
    );
    assert.equal(error.code, 'provider-refused');
    assert.equal(await readFile(join(site.pool, 'debian-0001.qcow2'), 'utf8'), 'precious');
    assert.deepEqual(await readdir(site.pool), ['debian-0001.qcow2']);
  });

  it('an upload to a directory does not change a link that leads out of it', async () => {
    await symlink('/srv/pinned.qcow2', join(site.pool, 'debian-latest.qcow2'));
    assert.equal((await errorOf(site.upload('0001', '2016-05-01'))).code, 'provider-refused');
    assert.equal(await readlink(join(site.pool, 'debian-latest.qcow2')), '/srv/pinned.qcow2');
  });

  for (const known of [true, false]) {
    it(`an upload to a directory rejects a file that is written to during the copy, with ${known ? 'known' : 'unknown'} digests`, async () => {
      const { checksums, ...file } = await site.imageFile('0001', '2016-05-01', 'x'.repeat(8 * 1024 * 1024));
      const written = { isDone: false };
      const onProgress = (): void => {
        if (written.isDone) return;
        written.isDone = true;
        writeFileSync(file.path, 'y'.repeat(8 * 1024 * 1024), { flag: 'r+' });
      };
      const error = await errorOf(
        site.provider.upload(
          {
            uploadId: 'u1',
            imageId: '0001',
            imageName: 'debian',
            file: { ...file, ...(known && checksums && { checksums }) },
          },
          { onProgress },
        ),
      );
      assert.equal(error.code, 'image-changed');
      assert.deepEqual(await readdir(site.pool), []);
    });
  }

  it('an upload to a directory never gives an image another image’s manifest', async () => {
    await site.upload('0001', '2016-05-01');
    const file = await site.imageFile('0001', '2016-05-02', 'other bytes');
    await site.provider.upload({ uploadId: 'u2', imageId: '0001', imageName: 'debian', file });
    const manifest = JSON.parse(await readFile(join(site.pool, 'debian-0001.qcow2.json'), 'utf8'));
    assert.equal(manifest['upload-id'], 'u2');
    assert.equal(manifest.sha256, checksumsOf('other bytes').sha256);
    assert.equal(await readFile(join(site.pool, 'debian-latest.qcow2'), 'utf8'), 'other bytes');
  });

  it('uploads to a directory share its bandwidth limit', async () => {
    const size = 512 * 1024;
    site.provider = new DirectoryProvider({ name: 'pool', directory: site.pool, bandwidthLimit: 4 * size });
    const files = await Promise.all(
      ['1', '2'].map((id) => site.imageFile(id, '2016-05-01', id.repeat(size))),
    );
    const started = performance.now();
    await Promise.all(
      files.map((file, index) =>
        site.provider.upload({ uploadId: `u${index}`, imageId: `${index}`, imageName: 'debian', file }),
      ),
    );
    // The first chunk is not delayed.
    assert.ok(performance.now() - started > 450, `it took ${performance.now() - started} ms`);
  });

  it('an upload to a missing directory fails with a remedy', async () => {
    await rm(site.pool, { recursive: true });
    const error = await errorOf(site.upload('0001', '2016-05-01'));
    assert.equal(error.code, 'directory-not-usable');
    assert.match(
      error.message,
      /provider pool: upload of debian-0001\.qcow2 in .* failed: .*; create the directory/,
    );
  });
});

describe('a deletion from a directory', () => {
  it('a deletion from a directory does not touch foreign files', async () => {
    await writeFile(join(site.pool, 'handmade.qcow2'), 'precious');
    await assert.rejects(site.provider.delete('handmade.qcow2'), { code: 'not-ours' });
    assert.equal(await readFile(join(site.pool, 'handmade.qcow2'), 'utf8'), 'precious');
  });

  it('a deletion from a directory does not reach outside it', async () => {
    await writeFile(join(site.root, 'outside'), 'precious');
    await writeFile(join(site.root, 'outside.json'), '{}');
    await assert.rejects(site.provider.delete('../outside'), /contains a "\/"/);
    assert.equal(await readFile(join(site.root, 'outside'), 'utf8'), 'precious');
  });

  it('a deletion from a directory that a crash interrupted is finished', async () => {
    await site.upload('0001', '2016-05-01');
    await rm(join(site.pool, 'debian-0001.qcow2'));
    assert.deepEqual(await site.provider.list(), []);
    await site.provider.delete('debian-0001.qcow2');
    assert.deepEqual(await readdir(site.pool), []);
  });
});
