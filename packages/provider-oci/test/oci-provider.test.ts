// Not a unit test: it starts docker-registry and zstd.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { requestFor, writeDisk } from './disk.ts';
import { PASSWORD } from './docker-registry.ts';
import { type OciFixture, ociFixture, writeAuthFile } from './oci-fixture.ts';
import { ask, type Manifest, manifestAt, tagsOf } from './registry-content.ts';

const run = promisify(execFile);

async function readManifest({ registry }: OciFixture, tag: string): Promise<Manifest> {
  return (await manifestAt(registry, tag)) as unknown as Manifest;
}

const UNPACK = { zstd: 'zstd', gzip: 'gzip', none: 'cat' } as const;

for (const compression of ['zstd', 'gzip', 'none'] as const) {
  test(`an OCI artifact has the file as its layer, with compression ${compression}`, async (t) => {
    const fixture = await ociFixture(t);
    const { directory, registry, repository } = fixture;
    const path = join(directory, 'disk.qcow2');
    const bytes = await writeDisk(path);
    const provider = fixture.open({ compression });
    const request = { ...(await requestFor(path)), metadata: { architecture: 'x86_64' } };
    const { externalId } = await provider.upload(request);
    assert.equal(externalId, `${repository}:debian-debian-0000000001`);

    const { artifactType, layers, annotations } = await readManifest(fixture, 'debian-debian-0000000001');
    assert.equal(artifactType, 'application/vnd.nodepool-builder.disk-image.v1');
    assert.equal(annotations.nodepool_upload_id, 'u1');
    assert.equal(annotations.nodepool_sha256, createHash('sha256').update(bytes).digest('hex'));
    assert.equal(annotations['org.opencontainers.image.created'], '2026-05-01T00:00:00.000Z');
    const [{ digest, size, mediaType, annotations: own }] = layers;
    const [suffix, extension] = { zstd: ['+zstd', '.zst'], gzip: ['+gzip', '.gz'], none: ['', ''] }[
      compression
    ];
    assert.equal(mediaType, `application/vnd.nodepool-builder.disk-image.qcow2${suffix}`);
    assert.equal(own['org.opencontainers.image.title'], `debian-debian-0000000001.qcow2${extension}`);
    const { body } = await ask(registry, `blobs/${digest}`);
    assert.equal(body.length, size);
    const packed = join(directory, 'packed');
    await writeFile(packed, body);
    const args = compression === 'none' ? [packed] : ['-dc', packed];
    const { stdout } = await run(UNPACK[compression], args, { encoding: 'buffer', maxBuffer: 2 ** 26 });
    assert.ok(stdout.equals(bytes), 'the unpacked layer is the file');
  });
}

test('an image without known checksums gets checksums of its bytes in the registry', async (t) => {
  const fixture = await ociFixture(t);
  const path = join(fixture.directory, 'disk.qcow2');
  await writeDisk(path, 2);
  const request = await requestFor(path);
  const { checksums, ...file } = request.file;
  const provider = fixture.open();
  await provider.upload({ ...request, file });
  assert.deepEqual((await provider.list())[0]?.checksums, checksums);
});

test('a file that differs from what was built is not pushed, and nothing is left', async (t) => {
  const fixture = await ociFixture(t);
  const path = join(fixture.directory, 'disk.qcow2');
  await writeDisk(path, 2);
  const request = await requestFor(path);
  await writeDisk(path, 2);
  const provider = fixture.open();
  await assert.rejects(provider.upload(request), { code: 'image-changed' });
  assert.deepEqual(await provider.list(), []);
  assert.deepEqual(await provider.listPartialUploads(), []);
});

test('the tag latest is on the image that was built last, also after a deletion', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry } = fixture;
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const provider = fixture.open();
  const latest = async (): Promise<string | undefined> =>
    (await readManifest(fixture, 'debian-latest')).annotations.nodepool_upload_id;
  const ids: string[] = [];
  for (const number of [2, 3, 1])
    ids.push((await provider.upload(await requestFor(path, number))).externalId);
  assert.equal(await latest(), 'u3');
  await provider.delete(ids[1] ?? '');
  assert.equal(await latest(), 'u2');
  await provider.delete(ids[2] ?? '');
  assert.equal(await latest(), 'u2');
  await provider.delete(ids[0] ?? '');
  assert.deepEqual(await tagsOf(registry), []);
});

test('a new upload of an image replaces the old one in the registry', async (t) => {
  const fixture = await ociFixture(t);
  const path = join(fixture.directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const provider = fixture.open();
  const request = await requestFor(path);
  await provider.upload(request);
  await provider.upload({ ...request, uploadId: 'second' });
  assert.deepEqual(
    (await provider.list()).map(({ uploadId }) => uploadId),
    ['second'],
  );
  assert.deepEqual(await tagsOf(fixture.registry), ['debian-debian-0000000001', 'debian-latest']);
});

test('a shared upload keeps the image that another process pushed', async (t) => {
  const fixture = await ociFixture(t);
  const path = join(fixture.directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const provider = fixture.open();
  const request = { ...(await requestFor(path)), shared: true };
  await provider.upload(request);
  const before = await manifestAt(fixture.registry, 'debian-latest');
  await writeDisk(path, 1);
  await provider.upload(await requestFor(path).then((other) => ({ ...other, shared: true })));
  assert.deepEqual(await manifestAt(fixture.registry, 'debian-latest'), before);
});

test('other clients’ tags are not listed, replaced or deleted', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry, repository } = fixture;
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const provider = fixture.open();
  await provider.upload(await requestFor(path));
  const { body } = await ask(registry, 'manifests/debian-debian-0000000001');
  const manifest = JSON.parse(body.toString());
  delete manifest.annotations;
  const headers = { 'content-type': 'application/vnd.oci.image.manifest.v1+json' };
  const put = async (tag: string): Promise<void> => {
    const { status } = await ask(registry, `manifests/${tag}`, {
      method: 'PUT',
      headers,
      body: JSON.stringify(manifest),
    });
    assert.equal(status, 201);
  };
  for (const tag of ['theirs', 'debian-debian-0000000002', 'ubuntu-latest']) await put(tag);
  const before = await tagsOf(registry);

  assert.equal((await provider.list()).length, 1);
  assert.equal((await provider.findImages({})).length, 1);
  const refused = { code: 'provider-refused' };
  await assert.rejects(provider.upload(await requestFor(path, 2)), refused);
  await assert.rejects(provider.upload({ ...(await requestFor(path, 3)), imageName: 'ubuntu' }), refused);
  for (const tag of ['theirs', 'debian-latest']) {
    await assert.rejects(provider.delete(`${repository}:${tag}`), { code: 'not-ours' });
  }
  await assert.rejects(provider.delete('registry.example.com/ci/images:theirs'), { code: 'bad-request' });
  await provider.discard('u2');
  assert.deepEqual(await tagsOf(registry), before);
});

test('image names that cannot be tags are rejected', async (t) => {
  const fixture = await ociFixture(t);
  const path = join(fixture.directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const request = await requestFor(path);
  for (const change of [
    { imageName: '-debian' },
    { imageName: 'ä' },
    { imageId: 'x'.repeat(130) },
    { imageId: 'latest' },
  ]) {
    await assert.rejects(fixture.open().upload({ ...request, ...change }), { code: 'provider-refused' });
  }
});

test('a rejected registry password causes an error that names the registry, and no secret', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry, lines } = fixture;
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const secret = 'hunter2-is-wrong';
  const authFile = await writeAuthFile(directory, registry.host, secret);
  const provider = fixture.open({ 'auth-file': authFile });
  const error: unknown = await provider.upload(await requestFor(path)).catch((reason: unknown) => reason);
  assert.ok(error instanceof Error);
  assert.match(error.message, /^provider ci: GET manifest debian-latest: .+; check the credentials/);
  assert.equal((error as { code?: string }).code, 'auth-failed');
  const shown = `${JSON.stringify(error)} ${error.stack} ${lines.join('\n')}`;
  for (const word of [secret, PASSWORD, Buffer.from(`builder:${secret}`).toString('base64')]) {
    assert.ok(!shown.includes(word));
  }
});

test('the registry diagnosis reports what is missing', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry } = fixture;
  const states = async (settings = {}): Promise<string[]> =>
    (await Array.fromAsync(fixture.open(settings).diagnose())).map(
      ({ status, message }) => `${status}: ${message}`,
    );
  assert.deepEqual(await states(), [
    `ok: ${fixture.repository} has 0 tags`,
    `ok: uploads to ${fixture.repository} are permitted`,
    `ok: ${fixture.repository} permits deletions`,
  ]);
  const [untrusted = ''] = await states({ 'ca-file': undefined });
  assert.match(
    untrusted,
    /^problem: provider ci: GET tags: no response from 127\.0\.0\.1:\d+: unable to verify the first certificate/,
  );
  await writeAuthFile(directory, 'another.example.com');
  assert.match(
    (await states())[0] ?? '',
    /^problem: provider ci: the registry requires a user name and a password/,
  );
  await registry.kill();
  assert.match((await states())[0] ?? '', /^problem: provider ci: GET tags: no response .*ECONNREFUSED/);
});
