import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { crc32, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ImageErrorCode } from '@nodepool-builder/image-builder';
import { mountTmpfs } from '../../../image-builder/test/temporary-directory.ts';
import { withCode } from '../../../image-builder/test/with-code.ts';
import type { ArtifactRequest } from '../../src/download/artifact-request.ts';
import { DownloadFixture, md5, nginxFor, sha256 } from './download-fixture.ts';

const CONTENT = randomBytes(300_000);
const PACKED = zstdCompressSync(CONTENT);

const DAMAGES: readonly {
  readonly what: string;
  readonly name: string;
  readonly stored: Buffer;
  readonly request?: Partial<ArtifactRequest>;
  readonly code?: ImageErrorCode;
  readonly message: RegExp;
}[] = [
  {
    what: 'another sha256',
    name: 'image.raw.zst',
    stored: PACKED,
    request: { expected: { sha256: sha256(PACKED) } },
    message: new RegExp(`its sha256 is ${sha256(CONTENT)}, and ${sha256(PACKED)} was expected`),
  },
  {
    what: 'another md5',
    name: 'image.raw',
    stored: CONTENT,
    request: { expected: { md5: md5(PACKED) } },
    message: new RegExp(`its md5 is ${md5(CONTENT)}, and ${md5(PACKED)}`),
  },
  {
    what: 'another crc32',
    name: 'image.raw.zst',
    stored: PACKED,
    request: { expected: { crc32: '0000beef' } },
    message: new RegExp(
      `its crc32 of the stored object is ${crc32(PACKED).toString(16).padStart(8, '0')}, and 0000beef`,
    ),
  },
  {
    what: 'fewer bytes than announced',
    name: 'image.raw.zst',
    stored: PACKED,
    request: { expected: { size: 300_001 } },
    message: /its size is 300000, and 300001/,
  },
  {
    what: 'more bytes than announced',
    name: 'image.raw.zst',
    stored: PACKED,
    request: { expected: { size: 299_999 } },
    code: 'artifact-too-large',
    message: /more than 299999 bytes/,
  },
  {
    what: 'more bytes than announced, unpacked',
    name: 'image.raw',
    stored: CONTENT,
    request: { expected: { size: 299_999 } },
    code: 'artifact-too-large',
    message: /more than 299999 bytes/,
  },
  {
    what: 'an end that is missing',
    name: 'image.raw.zst',
    stored: PACKED.subarray(0, -5),
    message: /cannot be unpacked as zstd/,
  },
  {
    what: 'an end that is missing',
    name: 'image.raw.gz',
    stored: gzipSync(CONTENT).subarray(0, -5),
    message: /unexpected end/,
  },
  {
    what: 'an end that is missing',
    name: 'image.raw.xz',
    stored: Buffer.from('fd377a585a00', 'hex'),
    message: /xz.*Unexpected end/,
  },
  { what: 'another way of packing', name: 'image.raw.xz', stored: PACKED, message: /xz.*not recognized/ },
  {
    what: 'something behind its end',
    name: 'image.raw.zst',
    stored: Buffer.concat([PACKED, CONTENT]),
    message: /frame descriptor/,
  },
];

describe('an artifact that is damaged is deleted', () => {
  for (const { what, name, stored, request, code = 'artifact-damaged', message } of DAMAGES) {
    test(`${what}: ${name}`, async (t) => {
      const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
      await writeFile(join(nginx.directory, name), stored);
      await assert.rejects(fixture.download(`${nginx.url}/${name}`, request), withCode(code, message));
      assert.deepEqual(await fixture.left(), { images: [], state: [] });
    });
  }
});

test('a bomb is stopped at the limit', async (t) => {
  const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
  const bomb = zstdCompressSync(Buffer.alloc(64 * 2 ** 20));
  assert.ok(bomb.length < 10_000);
  await writeFile(join(nginx.directory, 'bomb.raw.zst'), bomb);
  const request = { largestSize: 2 ** 20 };
  await assert.rejects(
    fixture.download(`${nginx.url}/bomb.raw.zst`, request),
    withCode('artifact-too-large', /more than 1048576 bytes/),
  );
  assert.deepEqual(await fixture.left(), { images: [], state: [] });
});

describe('a disk that is too small', () => {
  for (const [what, name, leaveFree] of [
    ['for the object: it is not begun', 'image.raw', 0],
    ['for what is unpacked', 'image.raw.zst', 0],
    ['with what has to stay free', 'small.raw', 2 ** 40],
  ] as const) {
    test(what, async (t) => {
      const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
      const directory = await mountTmpfs(t, 'size=1m');
      // Much of nothing but what no hole stands for.
      const content = Buffer.alloc(2 * 2 ** 20, 'image');
      await writeFile(join(nginx.directory, 'image.raw'), content);
      await writeFile(join(nginx.directory, 'small.raw'), 'content');
      await writeFile(join(nginx.directory, 'image.raw.zst'), zstdCompressSync(content));
      await assert.rejects(
        fixture.download(`${nginx.url}/${name}`, {
          destination: join(directory, 'image.raw'),
          stateDirectory: join(directory, 'state'),
          leaveFree,
        }),
        withCode('disk-full', /make room/),
      );
      const requests = await nginx.finish();
      assert.equal(requests.length, name === 'image.raw.zst' ? 2 : 1);
    });
  }
});
