import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { formatRow, type ImageFormat } from '../formats.ts';
import { checksumsOf } from '../hashed-reader.ts';
import type { ImageFilter } from '../image-filter/image-filter.ts';
import { latestImage } from '../image-filter/latest-image.ts';
import type { ImageFile, ImageProvider, Progress, ProviderImage, UploadRequest } from '../types.ts';
import { imageData } from './image-data.ts';

/** Size of a source file in bytes, which exceeds all buffers on the way. */
const SIZE = 3 * 1024 * 1024 + 17;

/** A provider and its surroundings. */
export interface ProviderSite {
  readonly provider: ImageProvider;
  /**
   * Puts an image into the same place that this provider did not upload, such as one of a provider with another name.
   *
   * @returns its external id
   */
  readonly foreign: (request: UploadRequest) => Promise<string>;
}

/**
 * Registers the tests that every {@link ImageProvider} passes.
 *
 * @param name of the test suite
 * @param openSite creates a provider without images for one test, with its cleanup in `t.after`
 */
export function imageProviderContract(
  name: string,
  openSite: (t: TestContext) => Promise<ProviderSite>,
): void {
  const open = async (t: TestContext): Promise<ImageProvider> => (await openSite(t)).provider;
  const check = (
    title: string,
    run: (provider: ImageProvider, request: UploadRequest, foreign: ProviderSite['foreign']) => Promise<void>,
  ): void => {
    test(title, async (t) => {
      const { provider, foreign } = await openSite(t);
      await run(provider, await uploadRequest(t, provider), foreign);
    });
  };

  describe(`${name} as an ImageProvider`, () => {
    test('an image provider accepts at least one format', async (t) => {
      assert.ok((await open(t)).formats.length > 0);
    });

    test('an uploaded image is listed, in each format', async (t) => {
      const provider = await open(t);
      for (const format of provider.formats) {
        const file = await imageFile(t, format);
        const { externalId } = await provider.upload({
          uploadId: `upload-${format}`,
          imageId: `id-${format}`,
          imageName: 'debian',
          file,
        });
        const listed = (await provider.list()).find((image) => image.externalId === externalId);
        assert.ok(listed, `${format}: ${externalId} is not listed`);
        const { uploadId, imageId, imageName, size, uploadedAt } = listed;
        assert.deepEqual(
          { uploadId, imageId, imageName, size },
          { uploadId: `upload-${format}`, imageId: `id-${format}`, imageName: 'debian', size: SIZE },
        );
        assert.equal(listed.format, format);
        assert.deepEqual(listed.checksums, file.checksums);
        assert.ok(
          Math.abs(uploadedAt.getTime() - Date.now()) < 3_600_000,
          `uploaded at ${uploadedAt.toISOString()}`,
        );
      }
      assert.equal((await provider.list()).length, provider.formats.length);
    });

    check('two uploads with one upload id result in one image', async (provider, request) => {
      await provider.upload(request);
      const { externalId } = await provider.upload(request);
      assert.deepEqual(externalIds(await provider.list()), [externalId]);
    });

    check('two concurrent uploads of one image result in one', async (provider, request) => {
      const results = await Promise.allSettled([provider.upload(request), provider.upload(request)]);
      assert.ok(results.some(({ status }) => status === 'fulfilled'));
      assert.equal((await provider.list()).length, 1);
    });

    check('images with other ids or names are separate images', async (provider, request) => {
      const ids = [
        (await provider.upload(request)).externalId,
        (await provider.upload({ ...request, uploadId: 'u2', imageId: 'another' })).externalId,
        (await provider.upload({ ...request, uploadId: 'u3', imageName: 'another' })).externalId,
      ];
      assert.equal(new Set(ids).size, 3);
      assert.deepEqual(externalIds(await provider.list()), ids.toSorted());
    });

    check('a deletion removes one image and no other', async (provider, request) => {
      const deleted = await provider.upload(request);
      const kept = await provider.upload({ ...request, uploadId: 'u2', imageId: 'another' });
      await provider.delete(deleted.externalId);
      assert.deepEqual(externalIds(await provider.list()), [kept.externalId]);
    });

    check('a discard removes one upload’s image and no other', async (provider, request) => {
      await provider.upload(request);
      const kept = await provider.upload({ ...request, uploadId: 'u2', imageId: 'another' });
      await provider.discard(request.uploadId);
      assert.deepEqual(externalIds(await provider.list()), [kept.externalId]);
      await provider.discard(request.uploadId);
      await provider.discard('never-begun');
      assert.deepEqual(externalIds(await provider.list()), [kept.externalId]);
    });

    check('a listed image has all properties that a filter uses', async (provider, request) => {
      const builtAt = new Date('2026-05-01T12:00:00Z');
      const { externalId } = await provider.upload({
        ...request,
        builtAt,
        metadata: { os: 'debian', architecture: 'x86_64', tags: 'ci, qa' },
      });
      const [candidate, ...others] = await provider.findImages({});
      assert.ok(candidate);
      assert.deepEqual(others, []);
      const { imageName, isUsable, isOwn, architecture, tags, properties, createdAt } = candidate;
      assert.deepEqual(
        { id: candidate.externalId, imageName, isUsable, isOwn, architecture, tags: tags.toSorted() },
        {
          id: externalId,
          imageName: 'debian',
          isUsable: true,
          isOwn: true,
          architecture: 'x86_64',
          tags: ['ci', 'qa'],
        },
      );
      assert.match(candidate.name, /debian/);
      assert.equal(properties.os, 'debian');
      assert.deepEqual(candidate.builtAt, builtAt);
      assert.ok(
        Math.abs(createdAt.getTime() - Date.now()) < 3_600_000,
        `created at ${createdAt.toISOString()}`,
      );
    });

    check('the images found by a filter contain the latest that passes it', async (provider, request) => {
      const upload = async (imageName: string, day: number, tags: string): Promise<string> => {
        const builtAt = new Date(Date.UTC(2026, 4, day));
        const metadata = { os: 'debian', tags };
        const other = { uploadId: `u${day}`, imageId: `id-${day}`, imageName, builtAt, metadata };
        return (await provider.upload({ ...request, ...other })).externalId;
      };
      // Its late upload does not make it newer.
      const [newer, older] = [await upload('debian', 2, 'ci'), await upload('debian', 1, 'ci,qa')];
      const other = await upload('ubuntu', 3, 'ci');
      const filters: readonly [ImageFilter, string | undefined][] = [
        [{}, other],
        [{ name: ['debian-*'] }, newer],
        [{ name: ['*id-1*', '?ebian-id-2*'] }, newer],
        [{ name: ['Debian*'] }, undefined],
        [{ imageName: ['debian'], tag: ['qa'] }, older],
        [{ imageName: ['debian', 'ubuntu'], tag: ['qa', 'none'] }, older],
        [{ properties: new Map([['os', ['debian', 'bsd']]]), createdAfter: new Date('2026-05-03') }, other],
        [{ properties: new Map([['os', ['bsd']]]) }, undefined],
        [{ owner: ['somebody-else'] }, undefined],
      ];
      for (const [filter, expected] of filters) {
        for (const withRefused of [false, true]) {
          const candidates = await provider.findImages(filter, { withRefused });
          assert.equal(latestImage(candidates, filter).latest?.externalId, expected);
        }
      }
    });

    check('a known id without an image is not found by a filter', async (provider, request) => {
      const { externalId } = await provider.upload(request);
      await provider.delete(externalId);
      assert.deepEqual(await provider.findImages({}, { known: [externalId] }), []);
    });

    check('an image’s documents are kept and deleted with it', async (provider, request) => {
      if (provider.getAttestations === undefined) return;
      assert.ok('addAttestations' in provider, 'it has getAttestations, but not addAttestations');
      const build = { name: 'build.sigstore.json', text: '{"about": "the build"}' };
      const upload = { name: 'upload.sigstore.json', text: '{"about": "the upload"}' };
      const byName = async (id: string) =>
        (await provider.getAttestations?.(id))?.toSorted((one, other) => (one.name < other.name ? -1 : 1));
      const plain = await provider.upload({ ...request, uploadId: 'u2', imageId: 'another' });
      assert.deepEqual(await byName(plain.externalId), []);
      const { externalId } = await provider.upload({ ...request, attestations: [build] });
      assert.deepEqual(await byName(externalId), [build]);
      for (const text of ['{}', upload.text])
        await provider.addAttestations?.(externalId, [{ ...upload, text }]);
      assert.deepEqual(await byName(externalId), [build, upload]);
      await provider.upload({ ...request, attestations: [build] });
      assert.deepEqual((await byName(externalId))?.[0], build);
      assert.equal((await provider.list()).length, 2);
      await provider.delete(externalId);
      await assert.rejects(provider.getAttestations(externalId), { code: 'image-not-found' });
      await assert.rejects(provider.addAttestations?.(externalId, [upload]) ?? Promise.resolve(), {
        code: 'image-not-found',
      });
      assert.deepEqual(await byName(plain.externalId), []);
    });

    check('deleting a missing image succeeds', async (provider, request) => {
      const { externalId } = await provider.upload(request);
      await provider.delete(externalId);
      await provider.delete(externalId);
      assert.deepEqual(await provider.list(), []);
    });

    check('an image of somebody else is neither listed nor deleted', async (provider, request, foreign) => {
      const externalId = await foreign(request);
      assert.deepEqual(await provider.list(), []);
      // It is still there the second time: deleting a missing image is not an error.
      for (let count = 0; count < 2; count++) {
        await assert.rejects(provider.delete(externalId), { code: 'not-ours' });
      }
      assert.deepEqual((await provider.listPartialUploads?.()) ?? [], []);
    });

    check('operations on one upload run one after the other', async (provider, request) => {
      const [first] = await Promise.all([provider.upload(request), provider.discard(request.uploadId)]);
      assert.deepEqual(
        await provider.list(),
        [],
        `image ${first.externalId} was uploaded before the discard`,
      );
    });

    check('an aborted upload leaves nothing after its discard', async (provider, request) => {
      const abort = new AbortController();
      const onProgress = (): void => abort.abort();
      await provider.upload(request, { signal: abort.signal, onProgress }).catch(() => {});
      await provider.discard(request.uploadId);
      assert.deepEqual(await provider.list(), []);
      assert.deepEqual((await provider.listPartialUploads?.()) ?? [], []);
    });

    check('an image that does not exist cannot be claimed', async (provider, request) => {
      const { externalId } = await provider.upload(request);
      await provider.delete(externalId);
      assert.equal(await provider.claim?.(externalId, { ...request, uploadId: 'u2' }), undefined);
    });

    check('a deleted image can be uploaded again', async (provider, request) => {
      await provider.delete((await provider.upload(request)).externalId);
      const { externalId } = await provider.upload(request);
      assert.deepEqual(externalIds(await provider.list()), [externalId]);
    });

    check('an upload that is aborted at its start leaves nothing', async (provider, request) => {
      await assert.rejects(provider.upload(request, { signal: AbortSignal.abort() }));
      assert.deepEqual(await provider.list(), []);
    });

    check(
      'an upload that is aborted halfway leaves a complete image or nothing',
      async (provider, request) => {
        const abort = new AbortController();
        const [result] = await Promise.allSettled([
          provider.upload(request, {
            signal: abort.signal,
            onProgress: () => abort.abort(),
          }),
        ]);
        // The abort may be too late.
        const expected = result.status === 'fulfilled' ? [result.value.externalId] : [];
        assert.deepEqual(externalIds(await provider.list()), expected);
      },
    );

    check('an upload from a missing file causes an error and leaves nothing', async (provider, request) => {
      await rm(request.file.path);
      await assert.rejects(provider.upload(request), (error) => error instanceof Error);
      assert.deepEqual(await provider.list(), []);
      assert.deepEqual((await provider.listPartialUploads?.()) ?? [], []);
    });

    check('a download has the upload’s bytes, and fails for a missing image', async (provider, request) => {
      if (provider.download === undefined) return; // the provider's images are not files
      const { path } = request.file;
      const { externalId } = await provider.upload(request);
      await provider.download(externalId, `${path}.copy`);
      assert.ok((await readFile(`${path}.copy`)).equals(await readFile(path)));
      await provider.delete(externalId);
      await assert.rejects(provider.download(externalId, `${path}.none`), { code: 'image-not-found' });
      await assert.rejects(stat(`${path}.none`), { code: 'ENOENT' });
    });

    check('the progress of an upload never decreases and ends with the total', async (provider, request) => {
      const seen: Progress[] = [];
      await provider.upload(request, {
        onProgress: (progress) => seen.push(progress),
      });
      const parts = seen.map(({ done, total }) => done / total);
      assert.equal(parts.at(-1), 1);
      assert.deepEqual(
        parts,
        parts.toSorted((one, other) => one - other),
      );
    });
  });
}

/** A function {@link ProviderSite.foreign} that uploads with another provider of the same place. */
export function foreignTo(other: ImageProvider): ProviderSite['foreign'] {
  return async (request) => (await other.upload(request)).externalId;
}

function externalIds(images: readonly ProviderImage[]): string[] {
  return images.map(({ externalId }) => externalId).toSorted();
}

async function uploadRequest(t: TestContext, { formats }: ImageProvider): Promise<UploadRequest> {
  const [format = 'raw'] = formats;
  return {
    uploadId: 'u1',
    imageId: 'debian-0000000001',
    imageName: 'debian',
    file: await imageFile(t, format),
  };
}

async function imageFile(t: TestContext, format: ImageFormat): Promise<ImageFile> {
  const directory = await mkdtemp(join(tmpdir(), 'image-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, `image.${formatRow(format).extension}`);
  await writeFile(path, imageData(format, SIZE));
  return { format, path, size: SIZE, checksums: await checksumsOf(path) };
}
