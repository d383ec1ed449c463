import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { crc32, zstdCompressSync } from 'node:zlib';
import type { Progress } from '@nodepool-builder/image-builder';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { DownloadFixture, imageContent, LOCAL, md5, nginxFor, sha256 } from './download-fixture.ts';

const SIZE = 2 * 2 ** 20;

/** Suffixes, and the programs that create such files. */
const PACKERS = [
  { suffix: '', command: undefined },
  { suffix: '.zst', command: 'zstd' },
  { suffix: '.xz', command: 'xz' },
  { suffix: '.gz', command: 'gzip' },
] as const;

describe('an artifact on nginx', () => {
  for (const { suffix, command } of PACKERS) {
    test(`the artifact image.raw${suffix} on nginx is fetched, unpacked and digested`, async (t) => {
      const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
      const content = imageContent(SIZE);
      const path = join(nginx.directory, 'image.raw');
      await writeFile(path, content);
      if (command !== undefined) execFileSync(command, ['-q', '-1', '-k', path]);
      const stored = await readFile(`${path}${suffix}`);
      const seen: Progress[] = [];
      const { size } = await fixture.download(
        `${nginx.url}/image.raw${suffix}`,
        {
          md5: md5(content),
          sha256: sha256(content),
          crc32: crc32(stored).toString(16).padStart(8, '0'),
        },
        { onProgress: (progress) => seen.push(progress) },
      );
      assert.equal(size, SIZE);
      assert.ok((await readFile(fixture.destination)).equals(content));
      const { blocks } = await stat(fixture.destination);
      assert.ok(blocks * 512 <= SIZE / 2 + 128 * 1024, `${blocks * 512} bytes on disk`);
      assert.deepEqual(seen.at(-1), { done: stored.length, total: stored.length });
    });
  }
});

test('an empty file, and a file that ends with a hole, are downloaded with the right size', async (t) => {
  const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
  const hole = Buffer.concat([randomBytes(1000), Buffer.alloc(600_000)]);
  const empty = Buffer.alloc(0);
  for (const [name, content, stored] of [
    ['hole.raw', hole, hole],
    ['hole.raw.zst', hole, zstdCompressSync(hole)],
    ['empty.raw', empty, empty],
    ['empty.raw.zst', empty, zstdCompressSync(empty)],
  ] as const) {
    await writeFile(join(nginx.directory, name), stored);
    await fixture.download(`${nginx.url}/${name}`, { sha256: sha256(content) });
    assert.ok((await readFile(fixture.destination)).equals(content), name);
  }
});

test('an artifact in a bucket is downloaded from a path of the S3 endpoint', async (t) => {
  const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
  const content = randomBytes(1000);
  execFileSync('mkdir', ['-p', join(nginx.directory, 'store/images')]);
  await writeFile(join(nginx.directory, 'store/images/a-b.qcow2'), content);
  await fixture.download('s3://images/a-b.qcow2', {
    access: { ...LOCAL, s3Endpoint: `${nginx.url}/store/` },
  });
  assert.ok((await readFile(fixture.destination)).equals(content));
});

test('no message about a download contains a URL’s signature', async (t) => {
  const [nginx, fixture] = await Promise.all([
    nginxFor(t, 'location /busy { return 503; }'),
    DownloadFixture.create(t),
  ]);
  await writeFile(join(nginx.directory, 'image.raw'), 'content');
  await fixture.download(`${nginx.url}/image.raw?X-Amz-Signature=secret`);
  const error: unknown = await fixture
    .download(`${nginx.url}/busy?X-Amz-Signature=secret`)
    .catch((reason: unknown) => reason);
  assert.ok(withCode('download-failed', /busy/)(error));
  assert.doesNotMatch(inspect(error, { depth: 9 }), /secret/);
  assert.ok(fixture.logger.lines.length >= 3);
  assert.doesNotMatch(fixture.logger.lines.join('\n'), /secret/);
});

test('a download to a directory that cannot be created causes an error with its path', async (t) => {
  const fixture = await DownloadFixture.create(t);
  await writeFile(fixture.destination, '');
  const directory = join(fixture.destination, 'partial');
  await assert.rejects(
    fixture.download('http://127.0.0.1/image.raw', { directory }),
    withCode('directory-not-usable', /image\.raw\/partial/),
  );
});
