import assert from 'node:assert/strict';
import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test';
import { DirectoryProvider } from '../../src/directory/directory-provider.ts';
import { DirectorySite } from './directory-site.ts';

let site: DirectorySite;

beforeEach(async () => {
  site = await DirectorySite.create();
});
afterEach(() => site.remove());

describe('the link to the latest image under wrong clocks', () => {
  const latest = (): Promise<string> => readlink(join(site.pool, 'debian-latest.qcow2'));
  const warnings: string[] = [];
  const openAt = (t: TestContext, day: string): void => {
    t.mock.timers.reset();
    t.mock.timers.enable({ apis: ['Date'], now: Date.parse(day) });
    warnings.length = 0;
    site.provider = new DirectoryProvider({
      name: 'pool',
      directory: site.pool,
      logger: { warn: (message) => warnings.push(message) },
    });
  };

  it('the link to the latest image counts a build in the future as built now, with a warning', async (t) => {
    openAt(t, '2026-05-02');
    await site.upload('a', '2036-05-01');
    const manifest = JSON.parse(await readFile(join(site.pool, 'debian-a.qcow2.json'), 'utf8'));
    assert.equal(manifest.built, '2026-05-02T00:00:00.000Z');
    assert.match(warnings.join(), /provider pool: image a has a build time in the future, 2036-05-01/);
    openAt(t, '2026-05-04');
    await site.upload('b', '2026-05-03');
    assert.equal(await latest(), 'debian-b.qcow2');
  });

  it('the link to the latest image leaves one whose manifest has a date in the future, with one warning', async (t) => {
    openAt(t, '2099-01-02');
    await site.upload('a', '2099-01-01');
    assert.equal(await latest(), 'debian-a.qcow2');
    openAt(t, '2026-05-04');
    await site.upload('b', '2026-05-03');
    assert.equal(await latest(), 'debian-b.qcow2');
    await site.upload('c', '2026-05-04');
    assert.equal(await latest(), 'debian-c.qcow2');
    assert.equal(warnings.length, 1);
    assert.match(
      String(warnings[0]),
      /provider pool: debian-a\.qcow2 has a build time in the future, 2099-01-01/,
    );
  });

  it('the link to the latest image follows the numbers in image ids where a clock was wrong', async (t) => {
    for (const [number, now] of [
      [4, '2026-05-04'],
      [5, '2099-01-01'],
      [6, '2026-05-05'],
      [7, '1970-01-02'],
    ] as const) {
      openAt(t, now);
      const imageId = `debian-000000000${number}-k7f3q2xa`;
      await site.upload(imageId, now);
      assert.equal(await latest(), `debian-${imageId}.qcow2`);
    }
  });
});
