import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readImages } from '../../src/repository/read-images.ts';

let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'read-images-'));
});
after(() => rm(directory, { recursive: true }));

describe('readImages', () => {
  it('lists the images of a directory and leaves it as it is', async () => {
    for (const name of ['0001.raw', '0001.qcow2', '0002.vhd', '.hidden.raw', '0003.txt', '0004.raw.md5']) {
      await writeFile(join(directory, name), 'content');
    }
    await mkdir(join(directory, '0005.raw'));
    const before = await readdir(directory);
    const images = await readImages(directory);
    assert.deepEqual(images.map(({ id, files }) => [id, files.map(({ format }) => format)]).toSorted(), [
      ['0001', ['qcow2', 'raw']],
      ['0002', ['vhd']],
    ]);
    assert.deepEqual(await readdir(directory), before);
  });

  it('says what to do about a directory that is not there', async () => {
    await assert.rejects(readImages(join(directory, 'missing')), /missing.*create the directory/);
  });
});
