import assert from 'node:assert/strict';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { UploadRequest } from '../../src/index.ts';
import { DirectorySite, errorOf } from './directory-site.ts';

const BUILD = { name: 'build.sigstore.json', text: '{"about": "the build"}' };
const UPLOAD = { name: 'upload.sigstore.json', text: '{"about": "the upload"}' };

let site: DirectorySite;

beforeEach(async () => {
  site = await DirectorySite.create();
});
afterEach(() => site.remove());

async function request(overrides: Partial<UploadRequest> = {}): Promise<UploadRequest> {
  const file = await site.imageFile('0001', '2016-05-01');
  return { uploadId: 'u1', imageId: '0001', imageName: 'debian', file, attestations: [BUILD], ...overrides };
}

async function sidecars(): Promise<string[]> {
  return (await readdir(site.pool)).filter((name) => name.includes('sigstore')).toSorted();
}

test('an image’s documents are files next to it, readable by all', async () => {
  const { externalId } = await site.provider.upload(await request());
  await site.provider.addAttestations(externalId, [UPLOAD]);
  assert.deepEqual(await sidecars(), [`${externalId}.${BUILD.name}`, `${externalId}.${UPLOAD.name}`]);
  const path = join(site.pool, `${externalId}.${UPLOAD.name}`);
  assert.equal(await readFile(path, 'utf8'), UPLOAD.text);
  assert.equal((await stat(path)).mode & 0o777, 0o644);
  const manifest = JSON.parse(await readFile(join(site.pool, `${externalId}.json`), 'utf8'));
  assert.deepEqual(manifest.attestations, [BUILD.name, UPLOAD.name]);
  assert.equal((await site.provider.list()).length, 1);
  assert.deepEqual(await site.provider.listPartialUploads(), []);
});

for (const remove of ['delete', 'discard'] as const) {
  test(`an image’s documents are removed by a ${remove}`, async () => {
    const { externalId } = await site.provider.upload(await request());
    await site.provider.addAttestations(externalId, [UPLOAD]);
    await site.provider[remove](remove === 'delete' ? externalId : 'u1');
    assert.deepEqual(await readdir(site.pool), []);
  });
}

test('an image that is uploaded again with other bytes gets only its own documents', async () => {
  const { externalId } = await site.provider.upload(await request());
  await site.provider.addAttestations(externalId, [UPLOAD]);
  const again = await request();
  const file = await site.imageFile('0001', '2016-05-01', 'other bytes');
  await site.provider.upload({ ...again, file });
  assert.deepEqual(await site.provider.getAttestations(externalId), [BUILD]);
  assert.deepEqual(await sidecars(), [`${externalId}.${BUILD.name}`]);
});

test('a shared upload adds documents that an earlier process did not store', async () => {
  const { externalId } = await site.provider.upload(await request({ shared: true, attestations: [] }));
  await site.provider.upload(await request({ shared: true }));
  assert.deepEqual(await site.provider.getAttestations(externalId), [BUILD]);
  const other = await request({ shared: true, attestations: [UPLOAD] });
  const file = await site.imageFile('0001', '2016-05-01', 'other bytes');
  await site.provider.upload({ ...other, file });
  assert.deepEqual(await site.provider.getAttestations(externalId), [BUILD]);
});

test('an interrupted deletion’s documents are partial, and are removed with it', async () => {
  const { externalId } = await site.provider.upload(await request());
  await rm(join(site.pool, externalId));
  const [partial = assert.fail()] = await site.provider.listPartialUploads();
  assert.equal(await partial.remove(), true);
  assert.deepEqual(await sidecars(), []);
});

test('a foreign file is never replaced or removed as a document', async () => {
  const foreign = join(site.pool, `debian-0001.qcow2.${BUILD.name}`);
  await writeFile(foreign, 'of someone else');
  assert.equal((await errorOf(site.provider.upload(await request()))).code, 'provider-refused');
  const { externalId } = await site.provider.upload(await request({ attestations: [] }));
  assert.equal((await errorOf(site.provider.addAttestations(externalId, [BUILD]))).code, 'provider-refused');
  await site.provider.delete(externalId);
  assert.equal(await readFile(foreign, 'utf8'), 'of someone else');
});

test('a document name in a manifest that leads to another directory is ignored', async () => {
  const { externalId } = await site.provider.upload(await request());
  const path = join(site.pool, `${externalId}.json`);
  const manifest = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify({ ...manifest, attestations: ['../../key.json', BUILD.name] }));
  assert.deepEqual(await site.provider.getAttestations(externalId), [BUILD]);
  await site.provider.delete(externalId);
  assert.deepEqual(await readdir(site.pool), []);
});

test('many documents that are added to an image at once are all kept', async () => {
  const { externalId } = await site.provider.upload(await request());
  const names = ['a', 'b', 'c', 'd'].map((name) => `${name}.sigstore.json`);
  await Promise.all(names.map((name) => site.provider.addAttestations(externalId, [{ name, text: name }])));
  const found = await site.provider.getAttestations(externalId);
  assert.deepEqual(found.map(({ name }) => name).toSorted(), [...names, BUILD.name].toSorted());
});

test('documents that are added to an image do not restore the manifest that a later upload has replaced', async () => {
  const { externalId } = await site.provider.upload(await request());
  const later = await request({ uploadId: 'u2' });
  const names = Array.from({ length: 20 }, (_, index) => `${index}.sigstore.json`);
  await Promise.all([
    site.provider.upload(later),
    ...names.map((name) => site.provider.addAttestations(externalId, [{ name, text: name }])),
  ]);
  assert.deepEqual(
    (await site.provider.list()).map(({ uploadId }) => uploadId),
    ['u2'],
  );
  assert.equal((await site.provider.getAttestations(externalId)).length, names.length + 1);
});
