import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { crc32, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ImageErrorCode } from '@nodepool-builder/image-builder';
import { mountTmpfs } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import type { ArtifactRequest } from '../../src/download/transfer.ts';
import { DownloadFixture, md5, nginxFor, oddServer, sha256 } from './download-fixture.ts';

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
    request: { sha256: sha256(PACKED) },
    message: new RegExp(`its sha256 is ${sha256(CONTENT)}, expected was ${sha256(PACKED)}`),
  },
  {
    what: 'another md5',
    name: 'image.raw',
    stored: CONTENT,
    request: { md5: md5(PACKED) },
    message: new RegExp(`its md5 is ${md5(CONTENT)}, expected was ${md5(PACKED)}`),
  },
  {
    what: 'another crc32',
    name: 'image.raw.zst',
    stored: PACKED,
    request: { crc32: '0000beef' },
    message: new RegExp(
      `its crc32 of the stored object is ${crc32(PACKED).toString(16).padStart(8, '0')}, expected was 0000beef`,
    ),
  },
  {
    what: 'too many bytes',
    name: 'image.raw.zst',
    stored: PACKED,
    request: { maxSize: 299_999 },
    code: 'artifact-too-large',
    message: /has more than 299999 bytes/,
  },
  {
    what: 'too many bytes, not compressed',
    name: 'image.raw',
    stored: CONTENT,
    request: { maxSize: 299_999 },
    code: 'artifact-too-large',
    message: /has more than 299999 bytes/,
  },
  {
    what: 'a missing end',
    name: 'image.raw.zst',
    stored: PACKED.subarray(0, -5),
    message: /cannot be unpacked as zstd/,
  },
  {
    what: 'a missing end',
    name: 'image.raw.gz',
    stored: gzipSync(CONTENT).subarray(0, -5),
    message: /unexpected end/,
  },
  {
    what: 'a missing end',
    name: 'image.raw.xz',
    stored: Buffer.from('fd377a585a00', 'hex'),
    message: /xz.*Unexpected end/,
  },
  { what: 'another coding', name: 'image.raw.xz', stored: PACKED, message: /xz.*not recognized/ },
  {
    what: 'data behind its end',
    name: 'image.raw.zst',
    stored: Buffer.concat([PACKED, CONTENT]),
    message: /frame descriptor/,
  },
];

describe('damaged artifacts', () => {
  for (const { what, name, stored, request, code = 'artifact-damaged', message } of DAMAGES) {
    test(`an artifact with ${what} is deleted as damaged: ${name}`, async (t) => {
      const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
      await writeFile(join(nginx.directory, name), stored);
      await assert.rejects(fixture.download(`${nginx.url}/${name}`, request), withCode(code, message));
      assert.equal(existsSync(fixture.directory), false);
    });
  }
});

test('unpacking a download stops at the size limit', async (t) => {
  const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
  const bomb = zstdCompressSync(Buffer.alloc(64 * 2 ** 20));
  assert.ok(bomb.length < 10_000);
  await writeFile(join(nginx.directory, 'bomb.raw.zst'), bomb);
  const request = { maxSize: 2 ** 20 };
  await assert.rejects(
    fixture.download(`${nginx.url}/bomb.raw.zst`, request),
    withCode('artifact-too-large', /has more than 1048576 bytes/),
  );
  assert.equal(existsSync(fixture.directory), false);
});

describe('downloads to a small disk', () => {
  for (const [what, name, leaveFree] of [
    ['for the object, before it is fetched', 'image.raw', 0],
    ['for the unpacked file', 'image.raw.zst', 0],
    ['for the space that must stay free', 'small.raw', 2 ** 40],
  ] as const) {
    test(`a download fails if the disk is too small ${what}`, async (t) => {
      const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
      const directory = await mountTmpfs(t, 'size=1m');
      const content = Buffer.alloc(2 * 2 ** 20, 'image');
      await writeFile(join(nginx.directory, 'image.raw'), content);
      await writeFile(join(nginx.directory, 'small.raw'), 'content');
      await writeFile(join(nginx.directory, 'image.raw.zst'), zstdCompressSync(content));
      await assert.rejects(
        fixture.download(`${nginx.url}/${name}`, {
          directory: join(directory, 'partial'),
          leaveFree,
        }),
        withCode('disk-full', /free space/),
      );
      const requests = await nginx.finish();
      assert.equal(requests.length, name === 'image.raw.zst' ? 2 : 1);
    });
  }
});

test('a download reserves its disk space before it is fetched', async (t) => {
  const [nginx, fixture] = await Promise.all([nginxFor(t), DownloadFixture.create(t)]);
  await writeFile(join(nginx.directory, 'image.raw'), Buffer.alloc(3 * 2 ** 20, 'image'));
  const reserved: number[] = [];
  const reserve = async (_path: string, bytes: number): Promise<void> => void reserved.push(bytes);
  await fixture.download(`${nginx.url}/image.raw`, { leaveFree: 2 ** 20 }, { reserve });
  assert.deepEqual(reserved, [4 * 2 ** 20]);
});

test('an endless object that unpacks to nothing leaves the required disk space free', async (t) => {
  const frame = Buffer.alloc(2 ** 20, 'x');
  frame.writeUInt32LE(0x184d2a50, 0); // a skippable frame of zstd
  frame.writeUInt32LE(frame.length - 8, 4);
  const server = await oddServer(t, (_, response) => {
    Readable.from(Array.from({ length: 128 }, () => frame)).pipe(response);
  });
  const fixture = await DownloadFixture.create(t);
  const directory = join(await mountTmpfs(t, 'size=64m'), 'partial');
  await assert.rejects(
    fixture.download(`${server.url}/image.raw.zst`, { directory, leaveFree: 32 * 2 ** 20 }),
    withCode('disk-full', /does not fit into/),
  );
});
