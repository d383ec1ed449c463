// Only in test:all: it has many faults of Azure.
import assert from 'node:assert/strict';
import { utimesSync } from 'node:fs';
import { appendFile, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { ArmDouble, ArmRequest } from '../../../test/doubles/azure/arm-double.ts';
import { ArmError } from '../../../test/doubles/azure/arm-model.ts';
import type { AzureProvider } from '../src/azure-provider.ts';
import { vhdFooter } from '../src/fixed-vhd.ts';
import { openProvider, startDouble } from './azure-fixture.ts';
import { diskRequest } from './disk.ts';

const MEBIBYTE = 1_048_576;
const DISKS = 'Microsoft.Compute/disks';
const IMAGES = 'Microsoft.Compute/images';

/** Checks for a `CloudError` with a code and a matching message. */
function cloudError(code: string, message: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof CloudError, inspect(error));
    assert.match(error.message, message);
    assert.equal(error.code, code);
    return true;
  };
}

/** Fails the first requests with a name. */
function failing(name: string, count: number, error: () => ArmError | 'lost' | { later: ArmError }) {
  let seen = 0;
  return (request: ArmRequest) => (request.name === name && seen++ < count ? error() : undefined);
}

/** Aborts an upload at its first pages, which leaves its disk. @returns the disk */
async function interrupt(double: ArmDouble, provider: AzureProvider, request: UploadRequest) {
  const abort = new AbortController();
  double.fault = ({ name }) => {
    if (name === 'PUT pages') abort.abort();
    return undefined;
  };
  await assert.rejects(provider.upload(request, { signal: abort.signal }));
  double.fault = () => undefined;
  const [disk, ...others] = double.ofType(DISKS);
  assert.ok(disk !== undefined && others.length === 0);
  return disk;
}

test('an upload to Azure sends only blocks with data, and the disk has whole MiB', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const request = await diskRequest(t, [0, 7], 40 * MEBIBYTE + 17);
  const { externalId } = await openProvider(double).upload(request);
  const content = await double.content(externalId);
  assert.equal(content.length, 41 * MEBIBYTE);
  const source = await readFile(request.file.path);
  assert.deepEqual(content.subarray(0, source.length), source);
  assert.equal(
    double.requests.filter(({ name }) => name === 'PUT pages').length,
    3,
    'two blocks and the footer',
  );
});

test('the VHD footer of a file that is not of whole MiB is not sent as data', async (t) => {
  const double = await startDouble(t);
  const size = 21.5 * MEBIBYTE;
  const { file, ...request } = await diskRequest(t, [0, 5], size);
  const source = await readFile(file.path);
  await appendFile(file.path, vhdFooter(size, 'seed', new Date()));
  const vhd = { format: 'vhd-fixed', path: file.path, size: size + 512 } as const;
  const { externalId } = await openProvider(double).upload({ ...request, file: vhd });
  const content = await double.content(externalId);
  assert.equal(content.length, 22 * MEBIBYTE);
  assert.deepEqual(content.subarray(0, size), source);
  assert.ok(content.subarray(size).every((byte) => byte === 0));
});

test('throttling, server errors and lost responses in Azure are retried', async (t) => {
  const double = await startDouble(t, { relaysPages: true, lag: 1 });
  const request = await diskRequest(t, [0, 1, 2, 3, 4]);
  const throttled = new ArmError('TooManyRequests', 'slow down', 429, { 'retry-after': '0' });
  const broken = new ArmError('InternalServerError', 'try again', 500);
  const busy = new ArmError('ServerBusy', 'busy', 503);
  const faults = [
    failing('PUT disks', 1, () => throttled),
    failing('POST disks/beginGetAccess', 1, () => broken),
    failing('PUT pages', 3, () => busy),
    failing('POST disks/endGetAccess', 1, () => 'lost'),
    failing('PUT images', 1, () => 'lost'),
    failing('GET operations', 1, () => broken),
    failing('DELETE disks', 1, () => 'lost'),
  ];
  double.fault = (entry) => faults.map((fault) => fault(entry)).find((fault) => fault !== undefined);
  const provider = openProvider(double);
  const { externalId } = await provider.upload(request);
  assert.deepEqual(await double.content(externalId), await readFile(request.file.path));
  assert.equal(double.ofType(IMAGES).length, 1);
  assert.deepEqual(double.ofType(DISKS), []);
});

test('an image that Azure cannot create fails with Azure’s reason, and leaves nothing', async (t) => {
  const double = await startDouble(t);
  const request = await diskRequest(t, [0]);
  const reason = new ArmError('AllocationFailed', 'There is no room for the image.');
  double.fault = failing('PUT images', 1, () => ({ later: reason }));
  const provider = openProvider(double);
  await assert.rejects(
    provider.upload(request),
    cloudError(
      'image-failed',
      /^provider azure: creation of image .*AllocationFailed.*There is no room for the image/,
    ),
  );
  assert.deepEqual([...double.ofType(DISKS), ...double.ofType(IMAGES)], []);
  await provider.upload(request);
  assert.equal((await provider.list()).length, 1);
});

for (const [title, code, error, message] of [
  [
    'a missing permission',
    'forbidden',
    new ArmError('AuthorizationFailed', 'The client does not have Microsoft.Compute/disks/write', 403),
    /disks\/write; give the credentials this permission/,
  ],
  [
    'an exhausted quota',
    'quota-exceeded',
    new ArmError('OperationNotAllowed', 'would exceed the quota limit of 50000', 409),
    /quota limit of 50000; delete what is not needed/,
  ],
  [
    'a rejected parameter',
    'bad-request',
    new ArmError('InvalidParameter', 'no such region'),
    /no such region/,
  ],
] as const) {
  test(`${title} in Azure has the code ${code}`, async (t) => {
    const double = await startDouble(t);
    double.fault = failing('PUT disks', 10, () => error);
    await assert.rejects(openProvider(double).upload(await diskRequest(t, [0])), cloudError(code, message));
  });
}

test('a rejected block leaves the Azure disk for the next attempt only if that may succeed', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const request = await diskRequest(t, [0, 1, 2]);
  const provider = openProvider(double);
  double.fault = failing('PUT pages', 1, () => new ArmError('Md5Mismatch', 'the MD5 differs', 400));
  await assert.rejects(provider.upload(request), cloudError('bad-request', /Md5Mismatch/));
  assert.deepEqual(double.ofType(DISKS), []);
});

test('expired access to an Azure disk is granted again', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const request = await diskRequest(t, [0, 1, 2, 3, 4, 5]);
  const expired = new ArmError(
    'AuthenticationFailed',
    'Signature not valid in the specified time frame',
    403,
  );
  const grants = () => double.requests.filter(({ name }) => name === 'POST disks/beginGetAccess').length;
  double.fault = ({ name }) => (name === 'PUT pages' && grants() < 2 ? expired : undefined);
  const { externalId } = await openProvider(double).upload(request);
  assert.deepEqual(await double.content(externalId), await readFile(request.file.path));
  assert.equal(grants(), 2);
});

test('an upload of other bytes to Azure does not continue on the first attempt’s disk', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const provider = openProvider(double);
  await interrupt(double, provider, await diskRequest(t, [0, 1, 2, 3]));
  const other = await diskRequest(t, [5, 6]);
  const { externalId } = await provider.upload(other);
  assert.deepEqual(await double.content(externalId), await readFile(other.file.path));
  assert.deepEqual(double.ofType(DISKS), []);
});

test('a missing file is reported as missing by an upload to Azure', async (t) => {
  const double = await startDouble(t);
  const request = await diskRequest(t, [0]);
  await rm(request.file.path);
  await assert.rejects(openProvider(double).upload(request), {
    code: 'image-missing',
    message: `"${request.file.path}" no longer exists; build the image again`,
  });
});

test('an upload to Azure whose file is gone removes the disk of an earlier attempt', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const provider = openProvider(double);
  const request = await diskRequest(t, [0, 1]);
  await interrupt(double, provider, request);
  await rm(request.file.path);
  await assert.rejects(provider.upload(request), { code: 'image-missing' });
  assert.deepEqual(double.ofType(DISKS), []);
});

test('an upload to Azure that may not delete its disk removes its image, and is retriable', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const provider = openProvider(double);
  const request = await diskRequest(t, [0, 1]);
  const denied = 'The client does not have Microsoft.Compute/disks/delete';
  double.fault = failing('DELETE disks', 100, () => new ArmError('AuthorizationFailed', denied, 403));
  await assert.rejects(provider.upload(request), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'forbidden');
    return error.retriable; // so that its builder discards it later
  });
  assert.deepEqual(double.ofType(IMAGES), []);
  double.fault = () => undefined;
  await provider.discard(request.uploadId);
  assert.deepEqual(double.ofType(DISKS), []);
});

for (const step of ['PUT pages', 'DELETE disks']) {
  test(`an upload to Azure without checksums removes the disk of an attempt that ended at ${step}, although no list shows it`, async (t) => {
    const double = await startDouble(t, { relaysPages: true, lag: 100 });
    const { file, ...others } = await diskRequest(t, [0, 1]);
    const { checksums: _, ...plain } = file;
    const request = { ...others, file: plain };
    const directory = join(file.path, '../records');
    const abort = new AbortController();
    double.fault = ({ name }) => {
      if (name !== step) return undefined;
      abort.abort();
      return new ArmError('InternalServerError', 'the process was killed', 500);
    };
    await assert.rejects(openProvider(double, {}, directory).upload(request, { signal: abort.signal }));
    assert.equal(double.ofType(DISKS).length, 1);
    double.fault = () => undefined;
    await openProvider(double, {}, directory).upload(request);
    assert.deepEqual(double.ofType(DISKS), []);
    assert.equal(double.ofType(IMAGES).length, 1);
  });
}

test('an Azure disk that another process deletes while access to it ends causes no error', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const provider = openProvider(double);
  const disk = await interrupt(double, provider, await diskRequest(t, [0, 1]));
  double.fault = failing('POST disks/endGetAccess', 1, () => {
    queueMicrotask(() => double.cloud.resources.delete(disk.id)); // once the operation has begun
    return {
      later: new ArmError('InternalExecutionError', 'The specified container does not exist.', 500),
    };
  });
  const request = await diskRequest(t, [5, 6]);
  const { externalId } = await provider.upload(request);
  assert.deepEqual(await double.content(externalId), await readFile(request.file.path));
});

test('a file that changes during its upload to Azure causes an error and leaves nothing', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const request = await diskRequest(t, [0, 1]);
  const { path } = request.file;
  double.fault = ({ name }) => {
    if (name === 'PUT pages') utimesSync(path, 1, 1);
    return undefined;
  };
  await assert.rejects(openProvider(double).upload(request), { code: 'image-changed' });
  assert.deepEqual(double.ofType(DISKS), []);
});

test('concurrent uploads to Azure by several processes result in one image', async (t) => {
  const request = { ...(await diskRequest(t, [0, 1, 2])), shared: true };
  const other = { ...(await diskRequest(t, [4, 5])), shared: true };
  for (const polls of [0, 1, 3, 10]) {
    const double = await startDouble(t, { polls, relaysPages: true });
    const uploads = [request, other, request, other].map((each) => openProvider(double).upload(each));
    const ids = new Set((await Promise.all(uploads)).map(({ externalId }) => externalId));
    assert.equal(ids.size, 1);
    assert.equal(double.ofType(IMAGES).length, 1);
    assert.deepEqual(double.ofType(DISKS), []);
  }
});

test('resources in Azure without our tags are neither listed nor touched', async (t) => {
  const double = await startDouble(t);
  const provider = openProvider(double);
  const other = openProvider(double, { name: 'other' });
  const request = await diskRequest(t, [0]);
  const { externalId } = await other.upload(request);
  assert.deepEqual(await provider.list(), []);
  assert.deepEqual(await provider.listPartialUploads(), []);
  await provider.discard(request.uploadId);
  await assert.rejects(provider.delete(externalId), { code: 'not-ours' });
  assert.equal((await other.list()).length, 1);
  assert.equal((await provider.findImages({})).length, 1);
});

test('no Azure error shows a URL’s signature', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  double.fault = failing(
    'PUT pages',
    99,
    () => new ArmError('InvalidHeaderValue', 'at https://a/b?sig=s3cr3t', 400),
  );
  await assert.rejects(openProvider(double).upload(await diskRequest(t, [0])), (error) => {
    const text = inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true });
    assert.doesNotMatch(text, /s3cr3t|sig=[^…]|Bearer [^…]/);
    return true;
  });
});

test('metadata that cannot be an Azure tag is rejected before anything is created', async (t) => {
  const double = await startDouble(t);
  const request = { ...(await diskRequest(t, [0])), metadata: { 'a/b': 'c' } };
  await assert.rejects(
    openProvider(double).upload(request),
    cloudError('bad-request', /"a\/b" cannot be a tag/),
  );
  assert.deepEqual(double.requests, []);
});

test('the Azure provider rejects a file in another format', async (t) => {
  const double = await startDouble(t);
  const request = await diskRequest(t, [0]);
  const qcow2 = { ...request, file: { ...request.file, format: 'qcow2' as const } };
  await assert.rejects(openProvider(double).upload(qcow2), { code: 'format-unavailable' });
});

test('an image that Azure creates despite a lost response keeps its disk, and is the result', async (t) => {
  for (const gallery of [undefined, { 'gallery-name': 'ci' }]) {
    const double = await startDouble(t, { polls: 5 });
    double.addGallery('ci');
    const request = await diskRequest(t, [0]);
    const unreachable = new ArmError('BadGateway', 'no answer', 400);
    let isCreating = false;
    double.fault = ({ name }) => {
      if (!isCreating || name !== 'GET operations') {
        isCreating ||= name === 'PUT images' || name === 'PUT versions';
        return undefined;
      }
      isCreating = false;
      return unreachable;
    };
    const provider = openProvider(double, gallery);
    const { externalId } = await provider.upload(request);
    assert.deepEqual(await double.content(externalId), await readFile(request.file.path));
    assert.equal(double.requests.filter(({ name }) => /^PUT (?:images|versions)$/.test(name)).length, 1);
    assert.deepEqual(double.ofType(DISKS), []);
  }
});

test('an image that Azure creates too slowly keeps its disk, and the next attempt waits for it', async (t) => {
  const double = await startDouble(t, { polls: 5 });
  const request = await diskRequest(t, [0]);
  const provider = openProvider(double, { 'image-import-timeout': 5 });
  const busy = new ArmError('ServerBusy', 'later', 503, { 'retry-after': '60' });
  let isCreating = false;
  double.fault = ({ name }) => {
    isCreating ||= name === 'PUT images';
    return isCreating && name === 'GET operations' ? busy : undefined;
  };
  await assert.rejects(
    provider.upload(request),
    cloudError('image-timeout', /creation of image .* after 5 s/),
  );
  assert.equal(double.ofType(DISKS).length, 1);
  double.fault = () => undefined;
  const { externalId } = await openProvider(double).upload(request);
  assert.deepEqual(await double.content(externalId), await readFile(request.file.path));
  assert.deepEqual(double.ofType(DISKS), []);
});

test('an upload to Azure whose disk cannot be deleted after a failure can be repeated and discarded', async (t) => {
  const double = await startDouble(t, { relaysPages: true });
  const request = await diskRequest(t, [0, 1, 2]);
  const provider = openProvider(double);
  double.fault = ({ name }) => {
    if (name === 'PUT pages') return new ArmError('Md5Mismatch', 'the MD5 differs', 400);
    return name === 'DELETE disks' ? new ArmError('Conflict', 'it is busy', 409) : undefined;
  };
  await assert.rejects(provider.upload(request), (error) => {
    assert.ok(error instanceof CloudError);
    return error.retriable && /Md5Mismatch/.test(error.message);
  });
  double.fault = () => undefined;
  await provider.discard(request.uploadId);
  assert.deepEqual(double.ofType(DISKS), []);
});
