// Only in test:all: it needs skopeo.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { requestFor, writeDisk } from './disk.ts';
import { type OciFixture, ociFixture } from './oci-fixture.ts';
import { ask, tagsOf } from './registry-content.ts';

const run = promisify(execFile);

/** Runs skopeo, which verifies all digests. */
async function copy({ registry, directory, authFile }: OciFixture, from: string, to: string): Promise<void> {
  const certificates = join(directory, 'certificates');
  await mkdir(certificates, { recursive: true });
  await symlink(registry.caFile, join(certificates, 'ca.crt')).catch(() => {}); // an earlier call may have created it
  await run('skopeo', ['copy', '--authfile', authFile, '--src-cert-dir', certificates, from, to]);
}

/** Creates an archive in OCI layout, like a build. */
async function makeArchive(fixture: OciFixture, number: number): Promise<string> {
  const { directory, repository } = fixture;
  const disk = join(directory, `disk-${number}.raw`);
  await writeDisk(disk, 4);
  const provider = fixture.open({ layout: 'container-disk' });
  const { externalId } = await provider.upload({
    ...(await requestFor(disk, number, 'raw')),
    imageName: 'source',
  });
  const archive = join(directory, `archive-${number}.tar`);
  await copy(fixture, `docker://${externalId}`, `oci-archive:${archive}`);
  await provider.delete(externalId);
  assert.deepEqual(await fixture.open({ repository }).list(), []);
  return archive;
}

const image = { layout: 'container-image' } as const;

test('an archive in the OCI layout is pushed unchanged', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry, repository } = fixture;
  const archive = await makeArchive(fixture, 1);
  const provider = fixture.open(image);
  const { externalId } = await provider.upload(await requestFor(archive, 1, 'tar'));
  const index = JSON.parse((await run('tar', ['-xOf', archive, 'index.json'])).stdout);

  const { body } = await ask(registry, 'manifests/debian-latest');
  const pushed = JSON.parse(body.toString());
  assert.equal(pushed.annotations.nodepool_upload_id, 'u1');
  assert.equal(pushed.manifests.length, 1);
  assert.equal(pushed.manifests[0].digest, index.manifests[0].digest);
  assert.deepEqual(pushed.manifests[0].platform, { architecture: 'amd64', os: 'linux' });
  const child = await ask(registry, `manifests/${index.manifests[0].digest}`);
  assert.equal(child.status, 200);
  await copy(fixture, `docker://${repository}:debian-latest`, `dir:${join(directory, 'copied')}`);

  await provider.delete(externalId);
  assert.equal((await ask(registry, `manifests/${index.manifests[0].digest}`)).status, 404);
  assert.deepEqual(await tagsOf(registry), []);
});

test('a container image with two tags stays until the last one is deleted', async (t) => {
  const fixture = await ociFixture(t);
  const { registry } = fixture;
  const archive = await makeArchive(fixture, 1);
  const provider = fixture.open(image);
  const first = await provider.upload(await requestFor(archive, 1, 'tar'));
  const second = await provider.upload(await requestFor(archive, 2, 'tar'));
  const { body } = await ask(registry, 'manifests/debian-latest');
  const { digest } = JSON.parse(body.toString()).manifests[0];
  await provider.delete(second.externalId);
  assert.equal((await ask(registry, `manifests/${digest}`)).status, 200);
  await provider.delete(first.externalId);
  assert.equal((await ask(registry, `manifests/${digest}`)).status, 404);
});

test('a container image with another client’s tag stays', async (t) => {
  const fixture = await ociFixture(t);
  const { registry } = fixture;
  const archive = await makeArchive(fixture, 1);
  const provider = fixture.open(image);
  const { externalId } = await provider.upload(await requestFor(archive, 1, 'tar'));
  const { manifests } = JSON.parse((await ask(registry, 'manifests/debian-latest')).body.toString());
  const { headers, body } = await ask(registry, `manifests/${manifests[0].digest}`);
  const type = { 'content-type': headers['content-type'] ?? '' };
  await ask(registry, 'manifests/theirs', { method: 'PUT', headers: type, body });
  await provider.delete(externalId);
  assert.deepEqual(await tagsOf(registry), ['theirs']);
  assert.equal((await ask(registry, 'manifests/theirs')).status, 200);
});

/** Puts another index between an archive’s index and its manifests, as buildx does. */
async function nestIndex({ directory }: OciFixture, archive: string): Promise<object> {
  const { stdout: inner } = await run('tar', ['-xOf', archive, 'index.json']);
  const digest = createHash('sha256').update(inner).digest('hex');
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  const outer = {
    schemaVersion: 2,
    manifests: [{ mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(inner) }],
  };
  await mkdir(join(directory, 'blobs/sha256'), { recursive: true });
  await writeFile(join(directory, 'blobs/sha256', digest), inner);
  await writeFile(join(directory, 'index.json'), JSON.stringify(outer));
  await run('tar', ['--delete', '-f', archive, 'index.json']);
  await run('tar', ['-rf', archive, '-C', directory, 'index.json', `blobs/sha256/${digest}`]);
  return JSON.parse(inner);
}

test('an archive with two indexes becomes a container image that every client can pull', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry, repository } = fixture;
  const archive = await makeArchive(fixture, 1);
  const inner = await nestIndex(fixture, archive);
  const provider = fixture.open(image);
  const { externalId } = await provider.upload(await requestFor(archive, 1, 'tar'));
  const { manifests } = JSON.parse((await ask(registry, 'manifests/debian-latest')).body.toString());
  const manifest = `manifests/${manifests[0].digest}`;
  await copy(fixture, `docker://${repository}:debian-latest`, `dir:${join(directory, 'copied')}`);

  // Another owner's index refers to an index that refers to the manifest.
  const type = 'application/vnd.oci.image.index.v1+json';
  const put = async (reference: string, content: object): Promise<void> => {
    const body = JSON.stringify({ ...content, schemaVersion: 2, mediaType: type });
    const { status } = await ask(registry, `manifests/${reference}`, {
      method: 'PUT',
      headers: { 'content-type': type },
      body,
    });
    assert.equal(status, 201);
  };
  await put('inner', inner);
  const { headers } = await ask(registry, 'manifests/inner');
  const digest = String(headers['docker-content-digest']);
  await put('theirs', { manifests: [{ mediaType: type, digest, size: Number(headers['content-length']) }] });
  await put('inner', { manifests: [] });
  await provider.delete(externalId);
  assert.deepEqual(await tagsOf(registry), ['inner', 'theirs']);
  assert.equal((await ask(registry, manifest)).status, 200);
});

test('the OCI provider rejects a damaged tgz', async (t) => {
  const fixture = await ociFixture(t);
  const path = join(fixture.directory, 'root.tgz');
  await writeFile(path, 'no gzip'); // random bytes might begin like gzip
  const provider = fixture.open(image);
  await assert.rejects(provider.upload(await requestFor(path, 1, 'tgz')), /incorrect header check/);
  const request = await requestFor(path, 1, 'tgz');
  await writeDisk(path, 2);
  await assert.rejects(provider.upload(request), Error);
  assert.deepEqual(await provider.listPartialUploads(), []);
});

test('an archive that lacks a layer is rejected, and nothing is left in the registry', async (t) => {
  const fixture = await ociFixture(t);
  const { directory, registry } = fixture;
  const archive = await makeArchive(fixture, 1);
  await run('tar', ['-xf', archive, 'index.json', '-C', directory], { cwd: directory });
  const index = JSON.parse(await readFile(join(directory, 'index.json'), 'utf8'));
  // The second manifest of the index does not exist.
  index.manifests.push({ ...index.manifests[0], digest: `sha256:${'0'.repeat(64)}` });
  await writeFile(join(directory, 'index.json'), JSON.stringify(index));
  await run('tar', ['--delete', '-f', archive, 'index.json']);
  await run('tar', ['-rf', archive, '-C', directory, 'index.json']);
  const provider = fixture.open(image);
  await assert.rejects(
    provider.upload(await requestFor(archive, 1, 'tar')),
    /blobs\/sha256\/0000\S* is missing/,
  );
  assert.equal((await ask(registry, `manifests/${index.manifests[0].digest}`)).status, 404);
  assert.deepEqual(await provider.listPartialUploads(), []);
});

for (const format of ['tar', 'tgz'] as const) {
  test(`a ${format} of a root file system becomes the layer of a container image`, async (t) => {
    const fixture = await ociFixture(t);
    const { directory, registry, repository } = fixture;
    const root = join(directory, 'root');
    await mkdir(join(root, 'etc'), { recursive: true });
    await writeFile(join(root, 'etc/hostname'), 'built');
    const path = join(directory, `root.${format}`);
    await run('tar', [format === 'tgz' ? '-czf' : '-cf', path, '-C', root, '.']);
    const bytes = await readFile(path);
    const tar = format === 'tgz' ? gunzipSync(bytes) : bytes;
    const provider = fixture.open(image);
    await provider.upload(await requestFor(path, 1, format));
    const copied = join(directory, 'copied');
    await copy(fixture, `docker://${repository}:debian-latest`, `dir:${copied}`);
    const { config } = JSON.parse(await readFile(join(copied, 'manifest.json'), 'utf8'));
    const { body } = await ask(registry, `blobs/${config.digest}`);
    assert.deepEqual(JSON.parse(body.toString()).rootfs, {
      type: 'layers',
      diff_ids: [`sha256:${createHash('sha256').update(tar).digest('hex')}`],
    });
  });
}

test('the OCI provider rejects a file of the wrong kind, and leaves nothing', async (t) => {
  const fixture = await ociFixture(t);
  const { directory } = fixture;
  const path = join(directory, 'file');
  await writeDisk(path, 1);
  const refused = { code: 'provider-refused' };
  await assert.rejects(fixture.open(image).upload(await requestFor(path)), refused);
  const disk = fixture.open({ layout: 'container-disk' });
  await assert.rejects(disk.upload(await requestFor(path, 1, 'tar')), refused);
  await writeFile(join(directory, 'manifest.json'), '[]');
  const docker = join(directory, 'docker.tar');
  await run('tar', ['-cf', docker, '-C', directory, 'manifest.json']);
  await assert.rejects(fixture.open(image).upload(await requestFor(docker, 1, 'tar')), refused);
  await writeFile(join(directory, 'index.json'), '{"manifests": []}');
  await writeFile(join(directory, 'oci-layout'), '{}');
  await run('tar', ['-cf', docker, '-C', directory, 'index.json', 'oci-layout']);
  await assert.rejects(fixture.open(image).upload(await requestFor(docker, 1, 'tar')), refused);
  assert.deepEqual(await disk.list(), []);
  assert.deepEqual(await disk.listPartialUploads(), []);
});
