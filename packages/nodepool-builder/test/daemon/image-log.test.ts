import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { loggedImages, readLogPart } from '../../src/daemon/image-log.ts';
import { logFunction } from '../../src/protocol/log-part.ts';

/** First line of each log. The tests count the bytes after it. */
const BEGIN = '# image-name: "docs"\n';

/** Creates a build-log-dir with one log, which is removed after the test. */
async function siteWithLog(t: TestContext, text: string) {
  const directory = await mkdtemp(join(tmpdir(), 'image-log-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, 'docs-1.log');
  await writeFile(path, `${BEGIN}${text}`);
  const site = {
    directory,
    path,
    runs: false,
    read: async (
      { offset, ...request }: { offset: number; wait?: number; 'upload-id'?: string },
      imageId = 'docs-1',
    ) => {
      const isRunning = (): boolean => site.runs;
      const signal = AbortSignal.timeout(10_000);
      const argument = JSON.stringify({ ...request, offset: offset < 0 ? offset : offset + BEGIN.length });
      const json = await readLogPart(directory, logFunction(imageId), argument, isRunning, signal);
      const part = JSON.parse(json) as { offset: number; data: string; complete: boolean };
      return {
        ...part,
        offset: part.offset - BEGIN.length,
        data: Buffer.from(part.data, 'base64').toString(),
      };
    },
  };
  return site;
}

describe('image-log', () => {
  it('the image-log function reads a log from an offset', async (t) => {
    const site = await siteWithLog(t, 'one\ntwo\n');
    assert.deepEqual(await site.read({ offset: 4 }), { offset: 4, data: 'two\n', complete: true });
    assert.deepEqual(await site.read({ offset: 8, wait: 10 }), { offset: 8, data: '', complete: true });
    assert.deepEqual(await loggedImages(site.directory), ['docs-1']);
  });

  it('the image-log function waits for more output while the build runs', async (t) => {
    const site = await siteWithLog(t, 'one\n');
    site.runs = true;
    assert.deepEqual(await site.read({ offset: 4 }), { offset: 4, data: '', complete: false });
    const waiting = site.read({ offset: 4, wait: 10 });
    await appendFile(site.path, 'two\n');
    assert.deepEqual(await waiting, { offset: 4, data: 'two\n', complete: false });
  });

  it('the image-log function sends a large log in parts', async (t) => {
    const site = await siteWithLog(t, 'x'.repeat(300_000));
    const { data, complete } = await site.read({ offset: 0 });
    assert.deepEqual([data.length, complete], [262_144, false]);
    assert.equal((await site.read({ offset: data.length })).complete, true);
  });

  it('the image-log function resumes shortly before the end of a log that was truncated', async (t) => {
    const site = await siteWithLog(t, 'x'.repeat(300_000));
    await truncate(site.path, BEGIN.length + 100_000);
    const { offset, data, complete } = await site.read({ offset: 300_000 });
    assert.deepEqual([offset, data.length, complete], [34_464, 65_536, true]);
  });

  it('the image-log function rejects an invalid image id, and fails without a log', async (t) => {
    const site = await siteWithLog(t, '');
    await assert.rejects(site.read({ offset: 0 }, '../../etc/passwd'), /image-id/);
    await assert.rejects(site.read({ offset: 0 }, 'docs-2'), /no log of the build of image docs-2/);
    await assert.rejects(site.read({ offset: -1 }), /offset/);
    await assert.rejects(
      site.read({ offset: 0, 'upload-id': '../1' }),
      /no log of upload \.\.\/1 of image docs-1/,
    );
    await symlink('/etc/passwd', join(site.directory, 'link.log'));
    await assert.rejects(site.read({ offset: 0 }, 'link'), { code: 'ELOOP' });
    await writeFile(join(site.directory, 'other.log'), 'root logged in\n');
    await assert.rejects(site.read({ offset: 0 }, 'other'), /is not the log of a build/);
    await writeFile(join(site.directory, 'a b.log'), BEGIN);
    assert.deepEqual(await loggedImages(site.directory), ['docs-1']);
  });
});
