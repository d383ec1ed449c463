import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import type { Progress } from '../../src/index.ts';
import { type Manifest, type ManifestFile, readManifest } from '../../src/manifest.ts';
import { Layout, WORKSPACE } from '../../src/repository/layout.ts';
import { completePublication, describeFiles, publish } from '../../src/repository/publication.ts';
import { Staging } from '../../src/repository/staging.ts';

interface Fixture {
  readonly layout: Layout;
  readonly staging: Staging;
}

/** Creates a staging directory with image `a`: qcow2 and raw, and other files that disk-image-create leaves. */
async function setUp(t: TestContext): Promise<Fixture> {
  const layout = new Layout(await temporaryDirectory(t));
  await layout.create();
  const staging = await Staging.create(layout.staging);
  await writeFile(staging.path('a.qcow2'), 'qcow2');
  await writeFile(staging.path('a.raw'), 'content');
  await writeFile(staging.path('a.raw.md5'), `0  ${staging.path('a.raw')}\n`);
  await mkdir(staging.path('a.d'));
  await writeFile(staging.path('a.d/dib-manifest'), '');
  return { layout, staging };
}

async function describe({
  staging,
}: Fixture): Promise<{ manifest: Manifest; files: readonly ManifestFile[] }> {
  const files = await describeFiles(staging, 'a', ['qcow2', 'raw']);
  return { manifest: { version: 1, 'image-id': 'a', 'image-name': 'debian', files }, files };
}

async function published({ layout }: Fixture): Promise<string[]> {
  return (await readdir(layout.root)).filter((name) => name !== WORKSPACE).toSorted();
}

const ALL = ['a.d', 'a.qcow2', 'a.raw', 'a.raw.md5'];

test('an image’s files are described by their checksums, and the progress counts all bytes', async (t) => {
  const fixture = await setUp(t);
  const seen: Progress[] = [];
  const files = await describeFiles(fixture.staging, 'a', ['qcow2', 'raw'], {
    onProgress: (progress) => seen.push(progress),
  });
  assert.deepEqual(
    files.map(({ format, size }) => [format, size]),
    [
      ['qcow2', 5],
      ['raw', 7],
    ],
  );
  assert.equal(files[1]?.md5, '9a0364b9e99bb480dd25e1f0284c8555');
  assert.deepEqual(seen.at(-1), { done: 12, total: 12 });
});

test('a missing, empty or irregular image file is not published', async (t) => {
  const { staging } = await setUp(t);
  await writeFile(staging.path('a.vhd'), '');
  await symlink('a.raw', staging.path('a.vmdk'));
  for (const [format, message] of [
    ['tar', /a\.tar was not made/],
    ['vhd', /a\.vhd is empty/],
    ['vmdk', /a\.vmdk is not a regular file/],
  ] as const) {
    await assert.rejects(describeFiles(staging, 'a', ['raw', format]), withCode('image-missing', message));
  }
});

test('all image files and the manifest are published, and checksum files have the published paths', async (t) => {
  const fixture = await setUp(t);
  const { manifest, files } = await describe(fixture);
  await publish(fixture.layout, fixture.staging, manifest, files);
  assert.deepEqual(await published(fixture), ALL);
  assert.deepEqual(await readManifest(fixture.layout.manifest('a'), 'a'), manifest);
  const line = await readFile(join(fixture.layout.root, 'a.raw.md5'), 'utf8');
  assert.equal(line, `9a0364b9e99bb480dd25e1f0284c8555  ${join(fixture.layout.root, 'a.raw')}\n`);
});

test('a publication does not replace an existing file', async (t) => {
  const fixture = await setUp(t);
  const { manifest, files } = await describe(fixture);
  await writeFile(join(fixture.layout.root, 'a.raw'), 'of another');
  await assert.rejects(
    publish(fixture.layout, fixture.staging, manifest, files),
    withCode('image-exists', /a\.raw/),
  );
  assert.deepEqual(await published(fixture), ['a.raw']);
  assert.equal(await readFile(join(fixture.layout.root, 'a.raw'), 'utf8'), 'of another');
});

test('a publication replaces a deleted image’s directory', async (t) => {
  const fixture = await setUp(t);
  const { manifest, files } = await describe(fixture);
  await mkdir(join(fixture.layout.root, 'a.d', 'old'), { recursive: true });
  await publish(fixture.layout, fixture.staging, manifest, files);
  assert.deepEqual(await readdir(join(fixture.layout.root, 'a.d')), ['dib-manifest']);
});

test('a failed publication is rolled back', async (t) => {
  const fixture = await setUp(t);
  const { manifest, files } = await describe(fixture);
  await mkdir(fixture.layout.manifest('a')); // the last rename fails
  await writeFile(join(fixture.layout.manifest('a'), 'file'), '');
  await assert.rejects(publish(fixture.layout, fixture.staging, manifest, files), { code: 'EISDIR' });
  assert.deepEqual(await published(fixture), []);
  assert.equal(await completePublication(fixture.layout, fixture.staging), undefined);
});

test('a publication without a journal publishes nothing', async (t) => {
  const fixture = await setUp(t);
  await describe(fixture);
  assert.equal(await completePublication(fixture.layout, fixture.staging), undefined);
  assert.deepEqual(await published(fixture), []);
});

for (let done = 0; done <= ALL.length + 1; done += 1) {
  test(`a publication that was interrupted after ${done} renames is completed`, async (t) => {
    const fixture = await setUp(t);
    const { layout, staging } = fixture;
    const { manifest, files } = await describe(fixture);
    await publish(layout, staging, manifest, files);
    // Restores the original state: renames are undone in reverse order.
    const renames = [
      ...['a.d', 'a.raw.md5', 'a.qcow2', 'a.raw'].map((name) => [
        staging.path(name),
        join(layout.root, name),
      ]),
      [staging.path('.manifest.json'), layout.manifest('a')],
    ] as const;
    for (const [from, to] of renames.slice(done)) await rename(to, from);
    assert.equal(await completePublication(layout, staging), 'a');
    assert.deepEqual(await published(fixture), ALL);
    assert.deepEqual(await readManifest(layout.manifest('a'), 'a'), manifest);
    assert.equal((await stat(layout.image('a', 'raw'))).size, 7);
  });
}
