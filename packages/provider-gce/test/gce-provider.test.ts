// Not a unit test: it starts servers and programs, and kills them.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/module-kit';
import { GoogleRefusal } from '../../../test/doubles/gce/model.ts';
import { type GceFixture, gceFixture, SECRET } from './gce-fixture.ts';

const MIB = 2 ** 20;

/** A disk of 64 MiB with data at its begin, in its middle and before its end. */
async function requestFor({ directory }: GceFixture, number = 1, data = 12 * MIB): Promise<UploadRequest> {
  const path = join(directory, `disk${number}.raw`);
  const file = await open(path, 'w');
  await file.truncate(64 * MIB);
  await file.write(randomBytes(data), 0, undefined, 0);
  await file.write(randomBytes(4096), 0, undefined, 32 * MIB);
  await file.write(randomBytes(5), 0, undefined, 63 * MIB);
  await file.close();
  return {
    uploadId: `u${number}`,
    imageId: `debian-000000000${number}`,
    imageName: 'debian',
    builtAt: new Date(Date.UTC(2026, 4, number)),
    file: { format: 'raw', path, size: 64 * MIB },
  };
}

/** Keeps the archives that images were made of. */
function keepArchives({ double }: GceFixture): Map<string, Buffer> {
  const archives = new Map<string, Buffer>();
  double.importError = ({ resource }) => {
    const { source = '' } = resource.rawDisk as { source?: string };
    const object = double.storage.objects.get(source.replace('https://storage.googleapis.com/', ''));
    if (object !== undefined) archives.set(resource.name, object.bytes);
    return undefined;
  };
  return archives;
}

/** Unpacks an archive with GNU tar and compares its disk with the file, padded to a whole GiB. */
async function assertDisk(fixture: GceFixture, archive: Buffer | undefined, path: string): Promise<void> {
  assert.ok(archive);
  const directory = join(fixture.directory, 'unpacked');
  await mkdir(directory, { recursive: true });
  const { status, stderr } = spawnSync('tar', ['-x', '-C', directory], { input: gunzipSync(archive) });
  assert.equal(status, 0, stderr.toString());
  const disk = join(directory, 'disk.raw');
  const { size, blocks } = await stat(disk);
  assert.equal(size, 2 ** 30);
  assert.ok(blocks * 512 < 64 * MIB, 'it has holes');
  const file = await open(disk);
  const bytes = Buffer.alloc(64 * MIB);
  await file.read(bytes, 0, bytes.length, 0);
  await file.close();
  assert.ok(bytes.equals(await readFile(path)));
}

/** Requests that change something, each after which the uploading process is killed once. */
const STEPS = ['StartResumableUpload', 'Upload', 'InsertImage', 'DeleteObject'] as const;

for (const task of STEPS) {
  for (const end of ['upload', 'discard'] as const) {
    const what = end === 'upload' ? 'finished by another attempt' : 'removed by a discard';
    test(`an upload to Compute Engine that was killed at ${task} is ${what}`, async (t) => {
      const fixture = await gceFixture(t, { pendingReads: 1 });
      const { double } = fixture;
      const archives = keepArchives(fixture);
      const request = await requestFor(fixture);
      await kill(fixture, request, { task, count: 1 });
      const provider = fixture.open();
      if (end === 'discard') await provider.discard('u1');
      else {
        const { externalId } = await provider.upload(request);
        assert.deepEqual(
          (await provider.list()).map((image) => image.externalId),
          [externalId],
        );
        await assertDisk(fixture, archives.get(externalId), request.file.path);
        // Nothing was sent twice.
        assert.equal(double.storage.receivedBytes, archives.get(externalId)?.length);
      }
      assert.equal(double.images.length, end === 'upload' ? 1 : 0);
      assert.equal(double.storage.objects.size, 0);
      assert.deepEqual(await provider.listPartialUploads(), []);
    });
  }
}

async function kill(
  { directory, double, entry }: GceFixture,
  request: UploadRequest,
  step: { task: string; count: number },
): Promise<void> {
  const endpoint = double.endpoint;
  const options = {
    entry: entry(),
    formats: ['raw'],
    directory: join(directory, 'records'),
    session: {
      project: 'ci-project',
      credentialsFile: join(directory, 'credentials.json'),
      endpoint,
      storageEndpoint: endpoint,
    },
    interval: 0.02,
  };
  const program = join(import.meta.dirname, 'killed-upload.ts');
  const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
  const settings = JSON.stringify({ options, request: { ...request, builtAt: undefined }, step });
  const child = spawn(process.execPath, [...args, settings], { stdio: ['ignore', 'inherit', 'inherit'] });
  assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL']);
}

test('an interrupted transfer to Compute Engine resumes where it was', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  const archives = keepArchives(fixture);
  const request = await requestFor(fixture, 1, 30 * MIB);
  let puts = 0;
  double.fault = ({ operation }) => {
    if (!operation.startsWith('PUT ') || ++puts <= 2) return undefined;
    return new GoogleRefusal(403, 'forbidden', 'no more');
  };
  // The process that got these refusals dies before it cleans up.
  await kill(fixture, request, { task: 'Upload', count: 1 });
  const before = double.storage.receivedBytes;
  assert.ok(before >= 8 * MIB, `${before} bytes`);
  double.fault = () => undefined;
  const { externalId } = await fixture.open().upload(request);
  const archive = archives.get(externalId);
  await assertDisk(fixture, archive, request.file.path);
  assert.equal(double.storage.receivedBytes, archive?.length);
});

test('an interrupted transfer to Compute Engine starts over if the disk’s archive has changed', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  const archives = keepArchives(fixture);
  const request = await requestFor(fixture, 1, 30 * MIB);
  let puts = 0;
  double.fault = ({ operation }) => {
    if (!operation.startsWith('PUT ') || ++puts <= 2) return undefined;
    return new GoogleRefusal(403, 'forbidden', 'no more');
  };
  await kill(fixture, request, { task: 'Upload', count: 1 });
  double.fault = () => undefined;
  const file = await open(request.file.path, 'r+');
  await file.write(randomBytes(4096), 0, undefined, 0);
  await file.close();
  const { externalId } = await fixture.open().upload(request);
  await assertDisk(fixture, archives.get(externalId), request.file.path);
});

test('a failed import in Compute Engine reports its reasons and leaves nothing', async (t) => {
  const fixture = await gceFixture(t);
  const { double, lines } = fixture;
  double.importError = () => ({ code: 'INVALID_IMAGE', message: 'The tar archive is not a valid image.' });
  await assert.rejects(fixture.open().upload(await requestFor(fixture)), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'image-failed');
    assert.match(
      error.message,
      /image debian-debian-0000000001: The tar archive is not a valid image\. \(INVALID_IMAGE\)/,
    );
    return true;
  });
  assert.deepEqual([double.images.length, double.storage.objects.size], [0, 0]);
  assert.ok(!lines.join('\n').includes(SECRET));
});

test('a Google rejection causes an error with its reason', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  const request = await requestFor(fixture);
  const refusals = [
    [new GoogleRefusal(403, 'forbidden', "Required 'compute.images.create' permission"), 'forbidden'],
    [
      new GoogleRefusal(403, 'quotaExceeded', "Quota 'IMAGES' exceeded. Limit: 100.0 globally."),
      'quota-exceeded',
    ],
  ] as const;
  for (const [refusal, code] of refusals) {
    double.fault = ({ operation }) => (operation === 'Images.Insert' ? refusal : undefined);
    await assert.rejects(fixture.open().upload(request), (error) => {
      assert.ok(error instanceof CloudError);
      assert.equal(error.code, code);
      assert.ok(error.message.includes(refusal.message));
      assert.ok(!error.message.includes(SECRET));
      return true;
    });
    assert.deepEqual([double.images.length, double.storage.objects.size], [0, 0]);
  }
});

test('a lost response to Compute Engine’s image request results in one image', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 1 });
  const { double } = fixture;
  let isLost = false;
  double.fault = ({ operation }) => {
    if (operation !== 'Images.Insert' || isLost) return undefined;
    isLost = true;
    return 'lost';
  };
  const request = await requestFor(fixture);
  const provider = fixture.open();
  const first = await provider.upload(request).catch((error: unknown) => error);
  if (first instanceof Error) await provider.upload(request);
  assert.equal(double.images.length, 1);
});

test('a Compute Engine image with a family is marked obsolete before it is deleted', async (t) => {
  const fixture = await gceFixture(t, { pendingReads: 1 });
  const provider = fixture.open({ 'image-family': 'debian-ci' });
  const { externalId } = await provider.upload(await requestFor(fixture));
  const [candidate] = await provider.findImages({ properties: new Map([['family', ['debian-ci']]]) });
  assert.equal(candidate?.externalId, externalId);
  fixture.double.requests.length = 0;
  await provider.delete(externalId);
  const changes = fixture.double.requests
    .map(({ operation }) => operation)
    .filter((operation) => !operation.endsWith('.Get'));
  assert.deepEqual(changes, ['Images.Deprecate', 'Images.Delete']);
  assert.deepEqual(fixture.double.images, []);
});

test('other projects’ images in Compute Engine are found only by a filter that names the project, and never deleted', async (t) => {
  const fixture = await gceFixture(t);
  const { double } = fixture;
  const provider = fixture.open();
  const add = (project: string, name: string, deprecated?: object): void => {
    const resource = {
      name,
      family: 'debian-13',
      creationTimestamp: '2026-05-01T00:00:00Z',
      ...(deprecated && { deprecated }),
    };
    double.images.push({ project, resource, status: 'READY', pendingReads: 0, isDeleted: false });
  };
  add('ci-project', 'debian-own');
  add('ci-project', 'debian-old', { state: 'DEPRECATED' });
  add('debian-cloud', 'debian-13-v1');
  const idsOf = async (owner?: string[]): Promise<string[]> => {
    const found = await provider.findImages({ name: ['debian-*'], ...(owner && { owner }) });
    return found.filter(({ isUsable }) => isUsable).map(({ externalId }) => externalId);
  };
  assert.deepEqual(await idsOf(), ['debian-own']);
  assert.deepEqual(await idsOf(['debian-cloud']), ['projects/debian-cloud/global/images/debian-13-v1']);
  await assert.rejects(provider.delete('debian-own'), { code: 'not-ours' });
  assert.deepEqual(await provider.list(), []);
});
