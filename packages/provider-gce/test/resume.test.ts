// Only in test:all: it kills an upload at each step.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { GoogleError } from '../../../test/doubles/gce/model.ts';
import { type GceFixture, gceFixture } from './gce-fixture.ts';

const MIB = 2 ** 20;

/** Creates a disk of 64 MiB with data at its beginning, in its middle and near its end. */
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

/** Keeps the archives from which images were created. */
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

/** Requests that change something. The uploading process is killed once after each of them. */
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
    return new GoogleError(403, 'forbidden', 'no more');
  };
  // The process that got these errors dies before it cleans up.
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
    return new GoogleError(403, 'forbidden', 'no more');
  };
  await kill(fixture, request, { task: 'Upload', count: 1 });
  double.fault = () => undefined;
  const file = await open(request.file.path, 'r+');
  await file.write(randomBytes(4096), 0, undefined, 0);
  await file.close();
  const { externalId } = await fixture.open().upload(request);
  await assertDisk(fixture, archives.get(externalId), request.file.path);
});
