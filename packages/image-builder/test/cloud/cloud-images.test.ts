import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type CloudImage, cloudImage } from '../../src/cloud/cloud-image.ts';
import { type CloudEntry, CloudImages, type CloudUpload } from '../../src/cloud/cloud-images.ts';
import { CloudError } from '../../src/cloud-error.ts';
import { ImageError } from '../../src/errors.ts';
import { foreignTo, imageProviderContract } from '../../src/testing/image-provider-contract.ts';
import type { UploadRequest, UploadResult } from '../../src/types.ts';

const RECORD = {
  type: 'object',
  required: ['upload-id'],
  properties: { 'upload-id': { type: 'string' } },
} as const;

const REQUEST: UploadRequest = {
  uploadId: 'u1',
  imageId: 'debian-1',
  imageName: 'debian',
  file: { format: 'raw', path: '/none', size: 1 },
};

interface StoredImage {
  readonly id: string;
  status: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** A cloud in memory, whose steps can be replaced. */
class MemoryImages extends CloudImages<CloudEntry, StoredImage, typeof RECORD> {
  readonly images: Map<string, StoredImage>;
  readonly steps: string[] = [];
  /** Steps that fail, with their errors. */
  failures: { make?: Error; remove?: Error } = {};
  read: (path: string) => Promise<unknown> = async () => {};

  readonly directory: string;

  constructor(name: string, images: Map<string, StoredImage>, directory: string, lines: string[] = []) {
    const warn = (line: string): void => void lines.push(line);
    const logger = { debug: () => {}, info: () => {}, warn, error: warn };
    super({ entry: { name }, formats: ['raw'], logger, directory }, RECORD);
    this.images = images;
    this.directory = directory;
  }

  protected async listImages(): Promise<readonly CloudImage<StoredImage>[]> {
    return Array.from(this.images.values(), describe);
  }

  protected async makeImage({ request, tags, signal, onProgress }: CloudUpload): Promise<UploadResult> {
    const { uploadId, file } = request;
    this.steps.push(`makes ${uploadId}`);
    if (!this.images.has(uploadId)) this.images.set(uploadId, { id: uploadId, status: 'saving', tags });
    onProgress({ done: 1, total: 2 });
    await this.read(file.path);
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    if (this.failures.make) throw this.failures.make;
    this.images.set(uploadId, { id: uploadId, status: 'active', tags });
    this.steps.push(`has made ${uploadId}`);
    return { externalId: uploadId };
  }

  protected async removeImage({ externalId }: CloudImage<StoredImage>): Promise<void> {
    this.images.delete(externalId);
  }

  protected override async removeUpload(uploadId: string, signal: AbortSignal): Promise<void> {
    this.steps.push(`removes ${uploadId}`);
    if (this.failures.remove) throw this.failures.remove;
    await super.removeUpload(uploadId, signal);
  }
}

function describe(image: StoredImage): CloudImage<StoredImage> {
  const { id, status, tags } = image;
  return cloudImage({
    native: image,
    externalId: id,
    name: `${tags.nodepool_image_name}-${tags.nodepool_build_id}`,
    status,
    isComplete: status === 'active',
    properties: tags,
    createdAt: new Date(),
  });
}

async function open(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'cloud-images-'));
  t.after(() => rm(directory, { recursive: true }));
  const lines: string[] = [];
  const images = new Map<string, StoredImage>();
  return { provider: new MemoryImages('cloud', images, directory, lines), images, lines };
}

imageProviderContract('a subclass of CloudImages', async (t) => {
  const { provider } = await open(t);
  provider.read = readFile;
  const other = new MemoryImages('other', provider.images, provider.directory);
  return { provider, foreign: foreignTo(other) };
});

test('a cloud’s failed upload is removed with its record', async (t) => {
  const { provider, images, lines } = await open(t);
  const error = new CloudError('forbidden', 'provider cloud: POST: no');
  provider.failures = { make: error };
  await assert.rejects(provider.upload(REQUEST), error);
  assert.equal(error.retriable, false);
  assert.equal(images.size, 0);
  assert.deepEqual(lines, []);
});

test('an upload whose cleanup fails causes a retriable error, and a discard removes it', async (t) => {
  const { provider, images, lines } = await open(t);
  provider.failures = { make: new ImageError('image-changed', 'it changed'), remove: new Error('lost') };
  await assert.rejects(provider.upload(REQUEST), (error: CloudError) => {
    assert.equal(error.code, 'image-failed');
    assert.equal(
      error.message,
      'provider cloud: upload of image debian-1: it changed; its cleanup also failed',
    );
    return error.retriable;
  });
  assert.match(lines.join('\n'), /the cleanup after its failure failed and will be repeated: Error: lost/);
  const [part, ...others] = await provider.listPartialUploads();
  assert.deepEqual([part?.uploadId, part?.subject, others], ['u1', 'image debian-debian-1 (saving)', []]);
  provider.failures = {};
  await provider.discard('u1');
  assert.equal(images.size, 0);
});

test('a failed shared upload keeps the image that another process has finished', async (t) => {
  const { provider, images } = await open(t);
  const other = new MemoryImages('cloud', images, provider.directory);
  const shared = { ...REQUEST, shared: true };
  provider.read = async () => await other.upload(shared);
  provider.failures = { make: new CloudError('forbidden', 'provider cloud: POST: no') };
  await assert.rejects(provider.upload(shared), { code: 'forbidden' });
  assert.deepEqual(
    (await provider.list()).map(({ externalId }) => externalId),
    ['u1'],
  );
  await provider.discard('u1');
  provider.read = async () => {};
  await assert.rejects(provider.upload(shared), { code: 'forbidden' });
  assert.equal(images.size, 0);
});

test('operations on one upload to a cloud run one after the other', async (t) => {
  const { provider, images } = await open(t);
  await Promise.all([provider.upload(REQUEST), provider.discard('u1'), provider.upload(REQUEST)]);
  assert.deepEqual(provider.steps, ['makes u1', 'has made u1', 'removes u1', 'makes u1', 'has made u1']);
  assert.equal(images.size, 1);
});

test('another provider’s image is neither listed nor deleted', async (t) => {
  const { provider, images } = await open(t);
  const other = new MemoryImages('other', images, provider.directory);
  const { externalId } = await other.upload(REQUEST);
  assert.deepEqual(await provider.list(), []);
  await assert.rejects(provider.delete(externalId), {
    code: 'not-ours',
    message:
      'provider cloud: u1 was not uploaded by this provider, and cannot be deleted; delete it by hand if nobody needs it',
  });
  assert.equal(images.size, 1);
});

test('an incomplete image that has changed since it was listed is not removed', async (t) => {
  const { provider, images } = await open(t);
  provider.failures = { make: new Error('no'), remove: new Error('no') };
  await assert.rejects(provider.upload(REQUEST));
  const [part = assert.fail()] = await provider.listPartialUploads();
  for (const image of images.values()) image.status = 'queued';
  assert.equal(await part.remove(), false);
  const [again = assert.fail()] = await provider.listPartialUploads();
  assert.equal(await again.remove(), true);
  assert.equal(await again.remove(), false);
  assert.equal(images.size, 0);
});
