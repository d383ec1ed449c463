import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DirectorySite } from './directory-site.ts';

let site: DirectorySite;

beforeEach(async () => {
  site = await DirectorySite.create();
});
afterEach(() => site.remove());

describe('a manifest that another program wrote', () => {
  const OTHER = 'debian-0002.qcow2';
  const forge = async (size: number): Promise<void> => {
    const manifest = JSON.parse(await readFile(join(site.pool, 'debian-0001.qcow2.json'), 'utf8'));
    const forged = { ...manifest, 'image-id': '0002', size, built: '2016-05-02T00:00:00.000Z' };
    await writeFile(join(site.pool, `${OTHER}.json`), JSON.stringify(forged));
  };
  const OTHERS: readonly (readonly [what: string, make: (path: string) => Promise<void>])[] = [
    ['a symbolic link to a file of the host', (path) => symlink('/etc/hostname', path)],
    ['an empty file', (path) => writeFile(path, '')],
    ['a file of another size', (path) => writeFile(path, 'image 0002 and more')],
    ['a directory', (path) => mkdir(path)],
  ];
  for (const [what, make] of OTHERS) {
    it(`another program’s manifest makes no image of ${what}`, async () => {
      await site.upload('0001', '2016-05-01');
      await make(join(site.pool, OTHER));
      await forge((await stat(join(site.pool, OTHER))).size + Number(what === 'a file of another size'));
      assert.deepEqual(
        (await site.provider.list()).map(({ imageId }) => imageId),
        ['0001'],
      );
      await site.upload('0000', '2016-04-01');
      assert.equal(await readlink(join(site.pool, 'debian-latest.qcow2')), 'debian-0001.qcow2');
    });
  }

  it('another program’s manifest is not read if it is a FIFO or a symbolic link', async () => {
    await site.upload('0001', '2016-05-01');
    await writeFile(join(site.pool, OTHER), 'image 0002');
    await forge(10);
    assert.equal((await site.provider.list()).length, 2);
    await rename(join(site.pool, `${OTHER}.json`), join(site.root, 'forged.json'));
    await symlink(join(site.root, 'forged.json'), join(site.pool, `${OTHER}.json`));
    assert.equal((await site.provider.list()).length, 1);
    await rm(join(site.pool, `${OTHER}.json`));
    assert.equal(spawnSync('mkfifo', [join(site.pool, `${OTHER}.json`)]).status, 0);
    assert.equal((await site.provider.list()).length, 1);
  });
});
