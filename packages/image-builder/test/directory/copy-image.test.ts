// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { truncateSync } from 'node:fs';
import { mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { copyImage } from '../../src/directory/copy-image.ts';

const MIB = 1024 * 1024;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'copy-image-'));
});
after(() => rm(directory, { recursive: true }));

async function copyOf(source: string): Promise<{ target: string; md5: string; sha256: string }> {
  const target = `${source}.copy`;
  return { target, ...(await copyImage(await fileAt(source), target)) };
}

describe('copyImage', () => {
  const contents: readonly (readonly [what: string, content: Buffer])[] = [
    ['an empty file', Buffer.alloc(0)],
    ['one byte', Buffer.from('x')],
    ['one zero', Buffer.alloc(1)],
    ['random bytes that end within a block', randomBytes(3 * MIB + 17)],
    ['data followed by zeros', Buffer.concat([randomBytes(5000), Buffer.alloc(2 * MIB)])],
    ['zeros followed by data within a block', Buffer.concat([Buffer.alloc(MIB + 100), randomBytes(9)])],
    [
      'alternating blocks of data and zeros',
      Buffer.concat(Array.from({ length: 100 }, (_, i) => Buffer.alloc(16_384, i % 2))),
    ],
  ];
  for (const [what, content] of contents) {
    it(`a copy of ${what} is complete and hashed`, async () => {
      const source = join(directory, what.replaceAll(' ', '-'));
      await writeFile(source, content);
      const { target, md5, sha256 } = await copyOf(source);
      assert.ok((await readFile(target)).equals(content));
      assert.equal(md5, createHash('md5').update(content).digest('hex'));
      assert.equal(sha256, createHash('sha256').update(content).digest('hex'));
    });
  }

  it('a copied image has holes in place of zeros', async () => {
    const source = join(directory, 'sparse');
    const file = await open(source, 'wx');
    await file.write(randomBytes(MIB), 0, MIB, 10 * MIB);
    await file.close();
    await truncate(source, 64 * MIB);
    const { target } = await copyOf(source);
    const { size, blocks } = await stat(target);
    assert.equal(size, 64 * MIB);
    assert.ok(blocks * 512 < 2 * MIB, `${blocks} blocks are allocated`);
  });

  it('copying an image reports progress, and stops when its signal aborts', async () => {
    const source = join(directory, 'large');
    await truncate(await emptyFile(source), 64 * MIB);
    const stop = new AbortController();
    const steps: number[] = [];
    const copy = copyImage(await fileAt(source), `${source}.copy`, {
      signal: stop.signal,
      onProgress: ({ done }) => {
        steps.push(done);
        stop.abort(new Error('enough'));
      },
    });
    await assert.rejects(copy, /enough/);
    assert.equal(steps.length, 1);
  });

  it('copying an image uses known checksums unchanged', async () => {
    const source = join(directory, 'known');
    await writeFile(source, randomBytes(MIB));
    const checksums = { md5: 'known-md5', sha256: 'known-sha256' };
    const file = { ...(await fileAt(source)), checksums };
    assert.deepEqual(await copyImage(file, `${source}.copy`), checksums);
    assert.ok((await readFile(`${source}.copy`)).equals(await readFile(source)));
  });

  it('copying an image fails if the source changes meanwhile', async () => {
    const source = join(directory, 'changing');
    await writeFile(source, randomBytes(8 * MIB));
    const copy = copyImage(await fileAt(source), `${source}.copy`, {
      onProgress: () => truncateSync(source, MIB),
    });
    await assert.rejects(copy, { code: 'image-changed' });
  });
});

async function fileAt(path: string): Promise<{ path: string; size: number }> {
  return { path, size: (await stat(path)).size };
}

async function emptyFile(path: string): Promise<string> {
  await writeFile(path, '');
  return path;
}
