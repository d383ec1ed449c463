// Not a unit test: it starts xz and zstd.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { type Coding, codingOf, unpack, unpackedName } from '../../src/download/unpacking.ts';

/** Yields the chunks of a file in the same memory, as a spool does. */
async function* lent(content: Buffer, size: number): AsyncGenerator<Buffer> {
  const memory = Buffer.alloc(size);
  for (let at = 0; at < content.length; at += size) {
    const length = content.copy(memory, 0, at, at + size);
    yield memory.subarray(0, length);
    memory.fill('!');
  }
}

async function unpackAll(coding: Coding, packed: Buffer, pieceSize: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of unpack(coding, lent(packed, pieceSize), new AbortController().signal)) {
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

/** Output of `pzstd`, of `cat`, and of an appending `gzip`. */
describe('several frames', () => {
  const parts = [randomBytes(3000), Buffer.alloc(700_000), randomBytes(10)];
  for (const [coding, pack] of [
    ['zstd', zstdCompressSync],
    ['gzip', gzipSync],
  ] as const) {
    const frames = parts.map((part) => pack(part));
    const ends = frames.map((_, index) => Buffer.concat(frames.slice(0, index + 1)).length);
    for (const size of [1000, ends[0] ?? 0, ends[1] ?? 0, 1_000_000]) {
      test(`several ${coding} frames are unpacked in pieces of ${size} bytes`, async () => {
        assert.ok((await unpackAll(coding, Buffer.concat(frames), size)).equals(Buffer.concat(parts)));
      });
    }
  }
});

test('truncated zstd causes an error, wherever it is cut', async () => {
  const packed = zstdCompressSync(
    Buffer.concat([randomBytes(200_000), Buffer.alloc(1000, 'text of some kind')]),
    {
      params: { [constants.ZSTD_c_checksumFlag]: 1 },
    },
  );
  const cuts = [1, 3, 5, 8, 1000, 131_000, packed.length - 200, packed.length - 5, packed.length - 1];
  for (const cut of cuts) {
    await assert.rejects(unpackAll('zstd', packed.subarray(0, cut), 100_000), `cut after ${cut} bytes`);
  }
});

test('a skippable zstd frame is skipped', async () => {
  const skipped = Buffer.from('502a4d1804000000deadbeef', 'hex');
  const packed = Buffer.concat([skipped, zstdCompressSync(Buffer.from('content')), skipped]);
  assert.equal(String(await unpackAll('zstd', packed, 1000)), 'content');
});

test('unpacking xz ends when the signal aborts', async () => {
  const stop = new AbortController();
  const never = (async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('fd377a585a00', 'hex');
    await new Promise((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(stop.signal.reason as Error));
    });
  })();
  const unpacked = unpack('xz', never, stop.signal)[Symbol.asyncIterator]().next();
  setImmediate(() => stop.abort(new Error('enough')));
  await assert.rejects(unpacked, (error) => error === stop.signal.reason);
});

test('a reader of xz that stops early does not wait for more input', { timeout: 30_000 }, async () => {
  const { stdout: packed } = spawnSync('xz', ['-0', '--block-size=1MiB'], { input: Buffer.alloc(2 ** 26) });
  const stalled = (async function* (): AsyncGenerator<Buffer> {
    yield packed.subarray(0, -100);
    await new Promise(() => {});
  })();
  let size = 0;
  for await (const chunk of unpack('xz', stalled, new AbortController().signal)) {
    size += chunk.length;
    if (size > 2 ** 20) break;
  }
  assert.ok(size > 2 ** 20);
});

test('a disk error is not mistaken for damaged xz', async () => {
  const error = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
  const broken = (async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('fd377a585a00', 'hex');
    throw error;
  })();
  const unpacked = unpack('xz', broken, new AbortController().signal)[Symbol.asyncIterator]().next();
  await assert.rejects(unpacked, (thrown) => thrown === error);
});

test('the suffix determines the compression, and a server’s content encoding may repeat it or is undone', () => {
  const packed = 'https://h/a.raw.gz';
  const suffixes = ['a.raw.zst?x=.gz', 'a.XZ', 'a.vhd.gz', 'a.qcow2', 'a.zst/b', ''];
  assert.deepEqual(
    suffixes.map((path) => codingOf(`https://h/${path}`, undefined)),
    ['zstd', 'xz', 'gzip', undefined, undefined, undefined],
  );
  assert.equal(codingOf('https://h/a.raw', 'gzip'), 'gzip');
  assert.equal(codingOf('https://h/a.raw', 'zstd'), 'zstd');
  assert.equal(codingOf(packed, 'x-gzip'), 'gzip');
  assert.equal(codingOf(packed, 'identity'), 'gzip');
  for (const encoding of ['zstd', 'br', 'gzip, gzip']) {
    assert.throws(() => codingOf(packed, encoding), withCode('artifact-refused', /encoding/), encoding);
  }
});

test('the name of an unpacked file lacks only its compression suffix', () => {
  for (const name of ['a.raw.zst', 'a.raw.XZ', 'a.raw.gz', 'a.raw']) {
    assert.equal(unpackedName(`https://h/${name}?signature=x.gz`), 'https://h/a.raw');
  }
});
