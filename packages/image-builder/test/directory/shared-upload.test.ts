import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { link, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ImageError, type UploadRequest } from '@nodepool-builder/image-builder';
import { DirectoryProvider } from '../../src/directory/directory-provider.ts';

const IMAGE = 'debian-0001.qcow2';
const MANIFEST = `${IMAGE}.json`;
const LATEST = 'debian-latest.qcow2';
const UPLOAD_ID = 'job/a.b';
const PARTIAL = '.upload-job%2Fa%2Eb.0123abcd.part';

let root: string;
let pool: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'shared-upload-'));
  pool = join(root, 'pool');
  await mkdir(pool);
});
afterEach(() => rm(root, { recursive: true }));

function openProvider(): DirectoryProvider {
  return new DirectoryProvider({ name: 'pool', directory: pool });
}

/** Creates a request to upload a file with this content. */
async function request(content: string, options: Partial<UploadRequest> = {}): Promise<UploadRequest> {
  const path = join(root, `${sha256(content)}.qcow2`);
  await writeFile(path, content);
  const file = { format: 'qcow2', path, size: content.length } as const;
  return { uploadId: UPLOAD_ID, imageId: '0001', imageName: 'debian', file, shared: true, ...options };
}

function sha256(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

async function names(): Promise<string[]> {
  return (await readdir(pool)).toSorted();
}

/** Returns the manifest and the file of an image. */
async function digests(): Promise<[manifest: string, file: string]> {
  const manifest: { sha256: string } = JSON.parse(await readFile(join(pool, MANIFEST), 'utf8'));
  return [manifest.sha256, sha256(await readFile(join(pool, IMAGE), 'utf8'))];
}

describe('a shared upload to a directory', () => {
  it('concurrent shared uploads of different files leave one image with its own manifest', async () => {
    const requests = await Promise.all(['one', 'other', 'third'].map((content) => request(content)));
    const results = await Promise.all(requests.map((each) => openProvider().upload(each)));
    assert.deepEqual(
      results,
      requests.map(() => ({ externalId: IMAGE })),
    );
    assert.deepEqual(await names(), [IMAGE, MANIFEST, LATEST]);
    const [said, there] = await digests();
    assert.equal(said, there);
  });

  it('a shared upload keeps an earlier upload’s image', async () => {
    await openProvider().upload(await request('one'));
    const before = await readFile(join(pool, MANIFEST), 'utf8');
    await openProvider().upload(await request('other'));
    assert.equal(await readFile(join(pool, MANIFEST), 'utf8'), before);
    assert.deepEqual(await digests(), [sha256('one'), sha256('one')]);
  });

  it('a shared upload takes over a file whose upload was killed before its manifest', async () => {
    await writeFile(join(pool, PARTIAL), 'one');
    await link(join(pool, PARTIAL), join(pool, IMAGE));
    await openProvider().upload(await request('other'));
    assert.deepEqual(await digests(), [sha256('one'), sha256('one')]);
  });

  it('a shared upload does not take over a foreign file', async () => {
    await writeFile(join(pool, IMAGE), 'precious');
    await assert.rejects(openProvider().upload(await request('other')), /was not made by this software/);
    assert.deepEqual(await names(), [IMAGE]);
  });

  it('a shared upload that left a file without a manifest is removed by a discard', async () => {
    await writeFile(join(pool, PARTIAL), 'one');
    await link(join(pool, PARTIAL), join(pool, IMAGE));
    await openProvider().discard(UPLOAD_ID);
    assert.deepEqual(await names(), []);
  });

  it('a shared upload does not replace another upload’s image', async () => {
    await openProvider().upload(await request('one', { uploadId: 'another' }));
    await assert.rejects(
      openProvider().upload(await request('other')),
      (error) => error instanceof ImageError && error.code === 'provider-refused',
    );
    assert.deepEqual(await digests(), [sha256('one'), sha256('one')]);
  });
});

describe('partial uploads in a directory', () => {
  it('partial uploads include a shared upload’s temporary file, which is removed with an image without a manifest', async () => {
    await openProvider().upload(await request('whole', { imageId: '0002' }));
    const whole = await names();
    await writeFile(join(pool, PARTIAL), 'half');
    await link(join(pool, PARTIAL), join(pool, IMAGE));
    const old = new Date('2026-01-01');
    await utimes(join(pool, PARTIAL), old, old);
    await writeFile(join(pool, '.upload-host.1.0123abcd.part'), 'of a builder');
    await writeFile(join(pool, '.upload-%zz.0123abcd.part'), 'of somebody');
    const [partialUpload, ...others] = await openProvider().listPartialUploads();
    assert.deepEqual(
      [partialUpload?.uploadId, partialUpload?.subject, partialUpload?.changedAt, others],
      [UPLOAD_ID, `file ${PARTIAL}`, old, []],
    );
    assert.equal(await partialUpload?.remove(), true);
    const theirs = ['.upload-%zz.0123abcd.part', '.upload-host.1.0123abcd.part'];
    assert.deepEqual(await names(), [...theirs, ...whole]);
    assert.equal(await partialUpload?.remove(), false);
  });

  it('partial uploads that changed since they were listed, or are complete, are not removed', async () => {
    await openProvider().upload(await request('whole'));
    await link(join(pool, IMAGE), join(pool, PARTIAL));
    const [whole] = await openProvider().listPartialUploads();
    assert.equal(await whole?.remove(), true);
    assert.deepEqual(await names(), [IMAGE, MANIFEST, LATEST]);
    await writeFile(join(pool, PARTIAL), 'half');
    const [moving] = await openProvider().listPartialUploads();
    await utimes(join(pool, PARTIAL), new Date(), new Date('2030-01-01'));
    assert.equal(await moving?.remove(), false);
    assert.ok((await names()).includes(PARTIAL));
  });
});
