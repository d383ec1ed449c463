// Only in test:all: it has many faults of an object store.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { UploadRequest, UploadResult } from '@nodepool-builder/image-builder';
import { checksumsOf, readSettings } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { type S3Double, startS3Double } from '../../../test/doubles/s3-double.ts';
import { S3Provider } from '../src/s3-provider.ts';
import { S3_SETTINGS, type S3Entry } from '../src/s3-settings.ts';

const MIB = 2 ** 20;

/** Size in bytes of a file of three parts. */
const SIZE = 40 * MIB + 5;

interface Fixture {
  readonly double: S3Double;
  readonly directory: string;
  readonly lines: string[];
  /** Owner of another builder. */
  readonly open: (settings?: Partial<S3Entry>) => S3Provider;
  readonly request: (number?: number, size?: number) => Promise<UploadRequest>;
  readonly writeKeys: (accessKeyId: string) => Promise<void>;
}

async function fixtureFor(t: TestContext, { isEncrypted = false } = {}): Promise<Fixture> {
  const double = await startS3Double(isEncrypted);
  t.after(() => double.stop());
  const directory = await mkdtemp(join(tmpdir(), 's3-double-'));
  t.after(() => rm(directory, { recursive: true }));
  const lines: string[] = [];
  const log = (message: string): void => void lines.push(message);
  const file = join(directory, 'credentials');
  const writeKeys = async (accessKeyId: string): Promise<void> => {
    await writeFile(file, `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = secret\n`);
  };
  await writeKeys('AKIDFIRST');
  const open = (settings: Partial<S3Entry> = {}): S3Provider => {
    const provider = new S3Provider({
      entry: {
        ...readSettings(S3_SETTINGS, {}, (path) => path),
        name: 'store',
        images: [],
        endpoint: double.endpoint,
        'bucket-name': 'images',
        'shared-credentials-file': file,
        'upload-concurrency': 1,
        ...settings,
      },
      formats: ['raw'],
      logger: { debug: log, info: log, warn: log, error: log },
    });
    t.after(() => provider.close());
    return provider;
  };
  const request = async (number = 1, size = 1000): Promise<UploadRequest> => {
    const path = join(directory, `image${number}.raw`);
    await writeFile(path, randomBytes(size));
    return {
      uploadId: `u${number}`,
      imageId: `debian-000000000${number}`,
      imageName: 'debian',
      builtAt: new Date(Date.UTC(2026, 4, number)),
      file: { format: 'raw', path, size, checksums: await checksumsOf(path) },
    };
  };
  return { double, directory, lines, open, request, writeKeys };
}

function operations({ requests }: S3Double, operation: string): number {
  return requests.filter((request) => request.operation === operation).length;
}

/** Returns the number of downloads of an object that were begun. */
function downloads({ requests }: S3Double, key: string): number {
  return requests.filter((request) => request.operation === 'GetObject' && request.key === key).length;
}

/** Rejects all requests from the third part on, including those for cleanup. */
function interrupt(double: S3Double): void {
  double.fault = () => (operations(double, 'UploadPart') >= 3 ? { refuse: 'AccessDenied' } : undefined);
}

function pointerOf({ objects }: S3Double): string {
  const text = String(objects.get('debian-latest.raw.json')?.body ?? '{}');
  return (JSON.parse(text) as { 'external-id': string })['external-id'];
}

test('an upload to a bucket with SSE-KMS succeeds, and resumes with the missing parts', async (t) => {
  const { double, directory, open, request } = await fixtureFor(t, { isEncrypted: true });
  const upload = await request(1, SIZE);
  interrupt(double);
  await assert.rejects(open().upload(upload), CloudError);
  assert.equal(double.multiparts.size, 1);
  double.fault = () => undefined;
  double.requests.length = 0;
  const provider = open();
  const { externalId } = await provider.upload(upload);
  assert.equal(operations(double, 'UploadPart'), 1);
  const copy = join(directory, 'copy.raw');
  await provider.download(externalId, copy);
  assert.ok((await readFile(copy)).equals(await readFile(upload.file.path)));
  assert.equal(double.multiparts.size, 0);
});

test('an encrypted bucket gets all parts of a file with other bytes after an interruption', async (t) => {
  const { double, open, request } = await fixtureFor(t, { isEncrypted: true });
  const upload = await request(1, SIZE);
  interrupt(double);
  await assert.rejects(open().upload(upload), CloudError);
  double.fault = () => undefined;
  const other = await request(1, SIZE);
  const { externalId } = await open().upload(other);
  assert.ok(double.objects.get(externalId)?.body.equals(await readFile(other.file.path)));
  assert.equal(double.multiparts.size, 0);
});

test('two jobs that upload one file to an encrypted bucket at the same time have the same image', async (t) => {
  const { double, open, request } = await fixtureFor(t, { isEncrypted: true });
  const upload = { ...(await request(1, SIZE)), shared: true };
  const [isAlmostDone, areBothDone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let second: Promise<UploadResult> | undefined;
  double.fault = async ({ operation }) => {
    if (operation === 'UploadPart' && operations(double, operation) === 2) {
      // The first job’s part arrives after the second job’s.
      second = open().upload(upload);
      await isAlmostDone.promise;
    }
    if (operation === 'CompleteMultipartUpload') {
      isAlmostDone.resolve();
      if (operations(double, operation) === 2) areBothDone.resolve();
      await areBothDone.promise;
    }
    return undefined;
  };
  const first = await open().upload(upload);
  assert.deepEqual(await second, first);
  assert.deepEqual(
    (await open().list()).map(({ externalId }) => externalId),
    [first.externalId],
  );
  assert.ok(double.objects.get(first.externalId)?.body.equals(await readFile(upload.file.path)));
  assert.equal(double.multiparts.size, 0);
});

test('a file that was truncated before its upload to S3 causes an error, and leaves nothing', async (t) => {
  const { double, open, request } = await fixtureFor(t);
  const upload = await request(1, 1000);
  await truncate(upload.file.path, 400);
  await assert.rejects(open().upload(upload), {
    code: 'image-changed',
    message: `"${upload.file.path}" changed before its upload: it has 400 bytes instead of 1000; build the image again`,
  });
  assert.deepEqual([double.objects.size, double.multiparts.size], [0, 0]);
});

test('the removal of an upload in S3 touches neither another upload of the image nor other objects', async (t) => {
  const { double, open, request } = await fixtureFor(t);
  const upload = await request(1, SIZE);
  const other = { ...upload, uploadId: 'u2' };
  // The first upload is interrupted after two parts; then another process uploads the same image.
  interrupt(double);
  await assert.rejects(open().upload(upload), CloudError);
  double.requests.length = 0;
  double.fault = async ({ operation }) => {
    if (operation === 'UploadPart' && operations(double, operation) === 2) {
      double.fault = () => undefined;
      await open().discard('u1');
    }
    return undefined;
  };
  const { externalId } = await open().upload(other);
  assert.deepEqual(
    (await open().list()).map(({ uploadId }) => uploadId),
    ['u2'],
  );
  assert.ok(double.objects.get(externalId)?.body.equals(await readFile(upload.file.path)));
  assert.equal(double.multiparts.size, 0);
  assert.deepEqual(
    [...double.objects.keys()].toSorted(),
    ['debian-latest.raw.json', externalId, `${externalId}.json`].toSorted(),
  );
});

test('the removal of an upload in S3 leaves an object that another program wrote to its key', async (t) => {
  const { double, lines, open, request } = await fixtureFor(t);
  const upload = await request();
  double.fault = ({ operation, key }) => {
    const isManifest = operation === 'PutObject' && !key.startsWith('.');
    const isCleanup = operation === 'DeleteObject' || operation === 'ListMultipartUploads';
    return isManifest || isCleanup ? { refuse: 'AccessDenied' } : undefined;
  };
  await assert.rejects(open().upload(upload), CloudError);
  double.fault = () => undefined;
  const [key = ''] = [...double.objects.keys()].filter((each) => each.endsWith('.raw'));
  double.objects.set(key, { body: Buffer.from('other'), etag: '"other"', metadata: {} });
  await open().discard('u1');
  assert.deepEqual([...double.objects.keys()], [key]);
  assert.match(lines.join('\n'), /was not created by nodepool-builder/);
  await assert.rejects(open().upload(upload), { code: 'provider-refused' });
  assert.equal(String(double.objects.get(key)?.body), 'other');
});

test('the pointer in S3 names the newer of two images that two builders finish at the same moment', async (t) => {
  const { double, open, request } = await fixtureFor(t);
  const [older, newer] = [await request(1), await request(2)];
  let isFirst = true;
  double.fault = async ({ operation, key }) => {
    if (operation === 'PutObject' && key === 'debian-latest.raw.json' && isFirst) {
      isFirst = false;
      // The builder of the older image has listed the images, and is about to write the pointer.
      await open().upload(newer);
    }
    return undefined;
  };
  await open().upload(older);
  assert.match(pointerOf(double), /debian-0000000002/);
  const deleted = pointerOf(double);
  const pointer = double.objects.get('debian-latest.raw.json');
  double.fault = ({ operation, key }) => {
    // Another builder, which has seen the image, writes the pointer back.
    if (operation === 'DeleteObject' && key === deleted && pointer)
      double.objects.set('debian-latest.raw.json', pointer);
    return undefined;
  };
  await open().delete(deleted);
  assert.match(pointerOf(double), /debian-0000000001/);
});

test('an S3 provider lists no images under a prefix that begins with its own', async (t) => {
  const { double, open, request } = await fixtureFor(t);
  await open({ prefix: 'ab' }).upload(await request(1));
  await open({ prefix: 'a/b/' }).upload(await request(2));
  const { externalId } = await open({ prefix: 'a' }).upload(await request(3));
  assert.deepEqual(
    (await open({ prefix: 'a' }).list()).map((image) => image.externalId),
    [externalId],
  );
  assert.deepEqual(
    (await open({ prefix: 'a/' }).list()).map((image) => image.externalId),
    [externalId],
  );
  assert.deepEqual(await open().list(), []);
  assert.ok(double.objects.has(`ab/debian-latest.raw.json`));
});

test('an upload to S3 succeeds although the response to its completion was lost', async (t) => {
  const { double, open, request } = await fixtureFor(t);
  double.fault = ({ operation }) =>
    operation === 'CompleteMultipartUpload' && operations(double, operation) === 1
      ? { loseResponse: true }
      : undefined;
  const { externalId } = await open().upload(await request());
  assert.equal(operations(double, 'CompleteMultipartUpload'), 2);
  assert.deepEqual(
    (await open().list()).map((image) => image.externalId),
    [externalId],
  );
});

test('an upload to S3 whose parts another process removed or replaced fails, and can be repeated', async (t) => {
  const { double, open, request } = await fixtureFor(t);
  const upload = await request();
  double.fault = ({ operation }) => {
    if (operation === 'CompleteMultipartUpload') double.multiparts.clear();
    return undefined;
  };
  await assert.rejects(open().upload(upload), { code: 'image-failed', retriable: true });
  double.fault = ({ operation }) =>
    operation === 'CompleteMultipartUpload' ? { refuse: 'InvalidPart' } : undefined;
  await assert.rejects(open().upload(upload), { code: 'image-failed', retriable: true });
  double.fault = () => undefined;
  await open().upload(upload);
});

test('another program’s JSON in S3 breaks neither the list nor the pointer', async (t) => {
  const { double, lines, open, request } = await fixtureFor(t);
  const { externalId } = await open().upload(await request());
  const manifest = String(double.objects.get(`${externalId}.json`)?.body);
  const foreign = [
    '{"a":1}',
    'null',
    '[',
    manifest,
    manifest.replace(/"built": "[^"]+"/, '"built": "never"'),
  ];
  for (const [index, text] of foreign.entries()) {
    const key = `debian-x${index}-0123456${index}.raw`;
    double.objects.set(key, { body: Buffer.alloc(1000), etag: `"${key}"`, metadata: {} });
    double.objects.set(`${key}.json`, { body: Buffer.from(text), etag: `"${index}"`, metadata: {} });
  }
  double.objects.set('secret.json', { body: Buffer.alloc(0), etag: '"s"', metadata: {} });
  double.objects.set('.nodepool-builder/x.json', { body: Buffer.from('{}'), etag: '"r"', metadata: {} });
  double.fault = ({ key }) => (key === 'secret.json' ? { refuse: 'AccessDenied' } : undefined);
  const provider = open();
  assert.deepEqual(
    (await provider.list()).map((image) => image.externalId),
    [externalId],
  );
  assert.equal((await provider.findImages({})).length, 1);
  assert.deepEqual(await provider.listPartialUploads(), []);
  const newer = await provider.upload(await request(2));
  assert.equal(pointerOf(double), newer.externalId);
  assert.equal(
    lines.filter((line) => /debian-x0-\d+\.raw\.json" is damaged: .* is ignored/.test(line)).length,
    1,
  );
});

test('credentials that were renewed during an upload to S3 are used', async (t) => {
  const { double, open, request, writeKeys } = await fixtureFor(t);
  double.fault = async ({ operation, accessKeyId }) => {
    if (operation === 'UploadPart' && operations(double, operation) === 2) await writeKeys('AKIDRENEWED');
    const isExpired = operations(double, 'UploadPart') >= 2 && accessKeyId === 'AKIDFIRST';
    return isExpired ? { refuse: 'ExpiredToken', message: 'The provided token has expired.' } : undefined;
  };
  const provider = open();
  await provider.upload(await request(1, SIZE));
  assert.equal(double.requests.at(-1)?.accessKeyId, 'AKIDRENEWED');
  // The response to HEAD has no code.
  await writeKeys('AKIDTHIRD');
  double.fault = ({ operation, accessKeyId }) =>
    operation === 'HeadObject' && accessKeyId !== 'AKIDTHIRD' ? { refuse: 'ExpiredToken' } : undefined;
  await provider.upload(await request(2));
  double.fault = () => ({ refuse: 'ExpiredToken', message: 'The provided token has expired.' });
  await assert.rejects(provider.list(), { code: 'auth-failed', message: /has expired/ });
});

test('a download from S3 resumes after lost connections, with the same object only', async (t) => {
  const { double, directory, open, request } = await fixtureFor(t);
  const upload = await request(1, 3 * MIB);
  const provider = open();
  const { externalId } = await provider.upload(upload);
  double.requests.length = 0;
  double.fault = ({ operation, key }) =>
    operation === 'GetObject' && key === externalId && operations(double, operation) <= 3
      ? { cutAfter: MIB }
      : undefined;
  const path = join(directory, 'copy.raw');
  await provider.download(externalId, path);
  assert.ok((await readFile(path)).equals(await readFile(upload.file.path)));
  const ranges = double.requests.filter(({ headers }) => headers.range !== undefined);
  assert.ok(ranges.length > 0 && ranges.every(({ headers }) => headers['if-match'] !== undefined));

  double.requests.length = 0;
  double.fault = ({ operation, key }) => {
    if (operation !== 'GetObject' || key !== externalId) return undefined;
    if (downloads(double, key) === 1) return { cutAfter: MIB };
    double.objects.set(key, { body: randomBytes(3 * MIB), etag: '"other"', metadata: {} });
    return undefined;
  };
  const other = join(directory, 'other.raw');
  await assert.rejects(provider.download(externalId, other), { code: 'image-failed', message: /SHA-256/ });
  await assert.rejects(readFile(other), { code: 'ENOENT' });
});

for (const [title, refuse] of [
  ['sends another ETag each time', 'PreconditionFailed'],
  ['rejects ranges', 'InvalidRange'],
  ['ignores ranges', undefined],
] as const) {
  test(`a download from a store that ${title} is repeated once, as a whole`, async (t) => {
    const { double, directory, open, request } = await fixtureFor(t);
    const upload = await request(1, 3 * MIB);
    const provider = open();
    const { externalId } = await provider.upload(upload);
    double.requests.length = 0;
    double.fault = ({ operation, key, headers }) => {
      if (operation !== 'GetObject' || key !== externalId) return undefined;
      if (downloads(double, key) === 1) return { cutAfter: MIB };
      if (headers.range !== undefined && refuse !== undefined) return { refuse };
      delete headers.range;
      return undefined;
    };
    const path = join(directory, 'copy.raw');
    await provider.download(externalId, path);
    assert.ok((await readFile(path)).equals(await readFile(upload.file.path)));
    assert.equal(downloads(double, externalId), refuse === undefined ? 2 : 3);
  });
}

test('the error for a locked S3 object names the lock', async (t) => {
  const { double, open, request } = await fixtureFor(t);
  const provider = open();
  const { externalId } = await provider.upload(await request(1));
  const message = 'Access Denied because object protected by object lock.';
  double.fault = ({ operation }) =>
    operation === 'DeleteObject' ? { refuse: 'AccessDenied', message } : undefined;
  await assert.rejects(provider.delete(externalId), {
    code: 'forbidden',
    message: /protected by object lock.*end the legal hold or the retention/,
  });
});

test('the S3 diagnosis names missing permissions, and leaves nothing', async (t) => {
  const { double, open } = await fixtureFor(t);
  const check = async (denied: readonly string[], message = 'Access Denied') => {
    double.fault = ({ operation }) =>
      denied.includes(operation) ? { refuse: 'AccessDenied', message } : undefined;
    const results = await Array.fromAsync(open().diagnose());
    assert.deepEqual([double.objects.size, double.multiparts.size], [0, 0]);
    return results.map((result) => `${result.status}: ${result.message}`);
  };
  const ok = 'ok: has 0 images';
  assert.deepEqual(await check([]), [ok, 'ok: the requests of an upload are permitted']);
  for (const [action, ...denied] of [
    ['s3:PutObject', 'PutObject', 'CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload'],
    ['s3:AbortMultipartUpload', 'AbortMultipartUpload'],
    ['s3:ListMultipartUploadParts', 'ListParts'],
    ['s3:ListBucketMultipartUploads', 'ListMultipartUploads'],
    ['s3:GetObject', 'GetObject', 'HeadObject'],
    ['s3:DeleteObject', 'DeleteObject'],
  ]) {
    assert.deepEqual(await check(denied), [ok, `problem: lack ${action}`]);
  }
  assert.deepEqual(await check(['DeleteObject', 'ListParts']), [
    ok,
    'problem: lack s3:ListMultipartUploadParts, s3:DeleteObject',
  ]);
  const reason = 'User: x is not authorized to perform: kms:GenerateDataKey on resource: y';
  assert.deepEqual(await check(['CreateMultipartUpload'], reason), [ok, 'problem: lack kms:GenerateDataKey']);
  assert.equal((await check(['ListObjectsV2'])).length, 1);
});

test('a bucket in another region causes an error that names the region', async (t) => {
  const { open, request } = await fixtureFor(t);
  for (const [status, code] of [
    [301, 'PermanentRedirect'],
    [307, 'TemporaryRedirect'],
  ] as const) {
    const server = createServer((incoming, response) => {
      incoming.resume();
      const headers = { 'x-amz-bucket-region': 'eu-central-1', location: 'http://127.0.0.1:1/' };
      response
        .writeHead(status, headers)
        .end(`<Error><Code>${code}</Code><Message>elsewhere</Message></Error>`);
    });
    t.after(() => void server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const provider = open({ endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    await assert.rejects(provider.upload(await request()), (error: unknown) => {
      assert.ok(error instanceof CloudError);
      assert.match(error.message, /set region-name to eu-central-1, or endpoint to the URL of the bucket/);
      return true;
    });
  }
});
