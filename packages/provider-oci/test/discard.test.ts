// Only in test:all: it takes many steps, with 200 images.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { imageTags } from '@nodepool-builder/image-builder/internal';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { requestFor, writeDisk } from './disk.ts';
import { type DoubleFixture, doubleFixture } from './double-fixture.ts';
import { ociFixture, openProvider } from './oci-fixture.ts';
import { ask, tagsOf } from './registry-content.ts';

const IMAGES = 200;
/** Number of requests of a discard: token, tag, `latest` before and after, manifest, unfinished upload. */
const FEW = 10;
const TYPE = 'application/vnd.oci.image.manifest.v1+json';
/** Pattern for the lines that Debian's docker-registry logs about responses. */
const STATUS = /http\.response\.status=/;

/** A manifest of ours for another image, which is older. */
function olderImage(manifest: string, number: number): { readonly tag: string; readonly text: string } {
  const id = `debian-${String(number).padStart(10, '0')}`;
  const builtAt = new Date(Date.UTC(2025, 0, 1, 0, number));
  const content = JSON.parse(manifest);
  const tags = imageTags('ci', { uploadId: `old${number}`, imageId: id, imageName: 'debian', builtAt });
  Object.assign(content.annotations, tags);
  return { tag: `debian-${id}`, text: JSON.stringify(content) };
}

interface Crowded extends DoubleFixture {
  /** An image that is not uploaded yet, and newer than all others. */
  readonly request: UploadRequest;
}

/** Starts a double with 200 images. */
async function crowdedFixture(t: TestContext): Promise<Crowded> {
  const fixture = await doubleFixture(t);
  const { double, directory } = fixture;
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 3);
  await fixture.open().upload({ ...(await requestFor(path)), uploadId: 'first' });
  const manifest =
    double.state.manifests.get(double.state.tags.get('debian-latest') ?? '')?.body.toString() ?? '';
  double.state.manifests.clear();
  double.state.tags.clear();
  for (let number = 2; number < IMAGES + 2; number += 1) {
    const { tag, text } = olderImage(manifest, number);
    for (const reference of [tag, ...(number === IMAGES + 1 ? ['debian-latest'] : [])]) {
      const put = { method: 'PUT', path: `manifests/${reference}`, headers: { 'content-type': TYPE } };
      const { status } = double.state.respond({
        ...put,
        query: new URLSearchParams(),
        body: Buffer.from(text),
      });
      assert.equal(status, 201);
    }
  }
  const request = await requestFor(path);
  const builtAt = new Date(Date.UTC(2026, 5, 1));
  return { ...fixture, request: { ...request, imageId: 'debian-0000009999', builtAt } };
}

/** Runs an upload whose process loses the registry permanently, as if it had been killed, at a request. */
async function breakOffAt({ double, open, request }: Crowded, step: string, count: number): Promise<void> {
  let seen = 0;
  double.fault = ({ operation }) => {
    if (seen >= count) return 'dropped';
    if (operation === step) seen += 1;
    return seen >= count ? 'lost' : undefined;
  };
  await assert.rejects(open().upload(request));
  double.fault = () => undefined;
  double.requests.length = 0;
}

const NEWEST = `debian-debian-${String(IMAGES + 1).padStart(10, '0')}`;

for (const [step, count] of [
  ['POST blobs/uploads', 1],
  ['PATCH blobs/uploads', 2],
  ['PUT manifests', 1],
] as const) {
  test(`an upload among 200 images that broke off at ${step} is discarded with a few requests`, async (t) => {
    const fixture = await crowdedFixture(t);
    const { double, open } = fixture;
    await breakOffAt(fixture, step, count);
    const provider = open();
    await provider.discard('u1');
    assert.ok(double.requests.length <= FEW, `${double.requests.length} requests`);
    assert.equal(double.state.manifests.size, IMAGES);
    assert.deepEqual(await provider.listPartialUploads(), []);
    assert.equal(double.state.tags.get('debian-latest'), double.state.tags.get(NEWEST));
  });
}

test('a discard by another host finds the image among 200 by its name, with a few requests', async (t) => {
  const { double, directory, settings, open, request } = await crowdedFixture(t);
  await open().upload(request);
  const newer = { ...request, uploadId: 'u2', imageId: 'debian-0000010000' };
  await open().upload({ ...newer, builtAt: new Date(Date.UTC(2026, 6, 1)) });
  const other = openProvider(settings, join(directory, 'other'));
  double.requests.length = 0;
  await other.discard('u1', { image: request });
  assert.ok(double.requests.length <= FEW, `${double.requests.length} requests`);
  assert.equal(double.state.manifests.size, IMAGES + 1);
  double.requests.length = 0;
  await other.discard('never-begun', { image: request });
  assert.ok(double.requests.length <= FEW, `${double.requests.length} requests`);
});

test('a process reads earlier builds among 200 images only once', async (t) => {
  const { double, open, request } = await crowdedFixture(t);
  const provider = open();
  for (const round of [1, 2, 3]) {
    double.requests.length = 0;
    await provider.upload(request);
    assert.equal(double.state.tags.get('debian-latest'), double.state.tags.get('debian-debian-0000009999'));
    await provider.discard('u1', { image: request });
    assert.equal(double.state.tags.get('debian-latest'), double.state.tags.get(NEWEST));
    assert.ok(round === 1 || double.requests.length <= 5 * FEW, `${double.requests.length} requests`);
  }
  assert.equal(double.state.manifests.size, IMAGES);
});

test('the tag latest follows other processes’ images', async (t) => {
  const { double, directory, settings, open, request } = await crowdedFixture(t);
  const [ours, theirs] = [open(), openProvider(settings, join(directory, 'other'))];
  const latest = (): string | undefined => double.state.tags.get('debian-latest');
  const tag = (id: string): string | undefined => double.state.tags.get(`debian-${id}`);
  const second = { ...request, uploadId: 'u2', imageId: 'debian-0000010000' };
  await ours.upload(request);
  await theirs.upload(second);
  assert.equal(latest(), tag(second.imageId));
  await ours.discard('u1', { image: request });
  assert.equal(latest(), tag(second.imageId));
  await theirs.upload({ ...request, uploadId: 'u3' });
  await theirs.discard('u2', { image: second });
  assert.equal(latest(), tag(request.imageId));
  await ours.upload({ ...second, uploadId: 'u4' });
  assert.equal(latest(), tag(second.imageId));
  await theirs.discard('u4', { image: second });
  await ours.discard('u3', { image: request });
  assert.equal(latest(), double.state.tags.get(NEWEST));
});

/** Writes an archive in the OCI layout, with one image. */
async function writeArchive(directory: string): Promise<string> {
  const blobs = join(directory, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const blob = async (mediaType: string, content: object): Promise<object> => {
    const text = JSON.stringify(content);
    const digest = createHash('sha256').update(text).digest('hex');
    await writeFile(join(blobs, digest), text);
    return { mediaType, digest: `sha256:${digest}`, size: text.length };
  };
  const config = await blob('application/vnd.oci.image.config.v1+json', {
    architecture: 'amd64',
    os: 'linux',
  });
  const manifest = await blob(TYPE, { schemaVersion: 2, mediaType: TYPE, config, layers: [] });
  await writeFile(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
  await writeFile(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  const path = join(directory, 'archive.tar');
  execFileSync('tar', ['-cf', path, '-C', directory, 'oci-layout', 'index.json', 'blobs']);
  return path;
}

test('a discard leaves a manifest that another unfinished upload of the same archive has pushed', async (t) => {
  const { double, directory, open, ...fixture } = await doubleFixture(t);
  const archive = await writeArchive(directory);
  const openContainers = () => open({ layout: 'container-image' });
  for (const number of [1, 2]) {
    const request = await requestFor(archive, number, 'tar');
    await breakOffAt({ ...fixture, double, directory, open: openContainers, request }, 'PUT manifests', 1);
  }
  const provider = openContainers();
  await provider.discard('u1');
  assert.equal(double.state.manifests.size, 1);
  await provider.discard('u2');
  assert.equal(double.state.manifests.size, 0);
});

test('a discard leaves another upload’s image, whatever names it is given', async (t) => {
  const { double, open, request } = await crowdedFixture(t);
  const provider = open();
  await provider.upload(request);
  await provider.discard('u2', { image: request });
  await provider.discard('u1', { image: { imageName: 'debian', imageId: 'debian-0000000002' } });
  assert.equal(double.state.manifests.size, IMAGES + 1);
  await provider.discard('u1');
  assert.equal(double.state.manifests.size, IMAGES);
});

for (const end of ['an upload', 'a discard', 'a removal of partial uploads'] as const) {
  test(`a break between a new image and the removal of the replaced one leaves no untagged manifest after ${end}`, async (t) => {
    const fixture = await crowdedFixture(t);
    const { double, open, request } = fixture;
    await open().upload({ ...request, uploadId: 'before' });
    await breakOffAt(fixture, 'PUT manifests', 1);
    const provider = open();
    if (end === 'an upload') await provider.upload(request);
    else if (end === 'a discard') await provider.discard('u1');
    else
      for (const partial of await provider.listPartialUploads()) assert.equal(await partial.remove(), true);
    const { manifests, tags } = double.state;
    assert.equal(manifests.size, end === 'a discard' ? IMAGES : IMAGES + 1);
    assert.equal(new Set(tags.values()).size, manifests.size);
    const wanted = end === 'a discard' ? NEWEST : 'debian-debian-0000009999';
    assert.equal(tags.get('debian-latest'), tags.get(wanted));
    assert.deepEqual(await provider.listPartialUploads(), []);
  });
}

test('an upload that breaks off before its manifest keeps the image that it would have replaced', async (t) => {
  const fixture = await crowdedFixture(t);
  const { double, open, request } = fixture;
  await open().upload({ ...request, uploadId: 'before' });
  await breakOffAt(fixture, 'PATCH blobs/uploads', 1);
  await open().discard('u1');
  assert.equal(double.state.manifests.size, IMAGES + 1);
  assert.ok((await open().list()).some(({ uploadId }) => uploadId === 'before'));
});

test('two uploads of one image at the same time end with the later one, whose tag a discard of the earlier one keeps', async (t) => {
  const { directory, open } = await doubleFixture(t);
  const [large, small] = [join(directory, 'large.qcow2'), join(directory, 'small.qcow2')];
  await writeDisk(large, 16);
  await writeDisk(small, 1);
  const provider = open({ 'chunk-size': 65_536 });
  // Without a queue, the earlier upload would end last, because it takes longer.
  await Promise.all([
    provider.upload({ ...(await requestFor(large)), uploadId: 'earlier' }),
    provider.upload({ ...(await requestFor(small)), uploadId: 'later' }),
  ]);
  await provider.discard('earlier');
  assert.deepEqual(
    (await provider.list()).map(({ uploadId }) => uploadId),
    ['later'],
  );
});

test('an image whose tag equals another name’s tag latest keeps it', async (t) => {
  const { double, open, request } = await crowdedFixture(t);
  const provider = open();
  await provider.upload({ ...request, imageName: 'a', imageId: 'b-latest' });
  const refused = { code: 'provider-refused' };
  await assert.rejects(
    provider.upload({ ...request, uploadId: 'u2', imageName: 'a-b', imageId: '1' }),
    refused,
  );
  assert.ok((await provider.list()).some(({ imageId }) => imageId === 'b-latest'));
  assert.equal(double.state.manifests.size, IMAGES + 1);
});

test('a discard takes a few requests among 200 images in Debian’s docker-registry', async (t) => {
  const { registry, directory, open } = await ociFixture(t);
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const request = await requestFor(path);
  await open().upload(request);
  const { body } = await ask(registry, 'manifests/debian-debian-0000000001');
  const put = { method: 'PUT', headers: { 'content-type': TYPE } };
  for (let number = 2; number < IMAGES + 1; number += 1) {
    const { tag, text } = olderImage(body.toString(), number);
    assert.equal((await ask(registry, `manifests/${tag}`, { ...put, body: text })).status, 201);
  }
  // The lines of the log arrive later than the responses.
  const loggedRequest = async (tag: string): Promise<number> => {
    await ask(registry, `manifests/${tag}`);
    const isOfRequest = (line: string): boolean => line.includes(tag) && STATUS.test(line);
    return await waitUntil(`${tag} in the log`, () => {
      const index = registry.log.findIndex(isOfRequest);
      return index >= 0 && index;
    });
  };
  const begin = await loggedRequest('before-the-discard');
  await open().discard('old2', { image: { imageName: 'debian', imageId: 'debian-0000000002' } });
  const end = await loggedRequest('after-the-discard');
  const requests = registry.log.slice(begin + 1, end).filter((line) => STATUS.test(line));
  assert.ok(requests.length > 0 && requests.length <= FEW, requests.join('\n'));
  const tags = await tagsOf(registry);
  assert.equal(tags.length, IMAGES);
  assert.ok(!tags.includes('debian-debian-0000000002') && tags.includes('debian-latest'));
});
