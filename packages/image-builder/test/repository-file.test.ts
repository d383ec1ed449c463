import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { checksumsOf } from '../src/hashed-reader.ts';
import type { ImageFormat } from '../src/index.ts';
import { readManifest } from '../src/manifest.ts';
import { Layout } from '../src/repository/layout.ts';
import { describeFiles } from '../src/repository/publication.ts';

const MEBIBYTE = 1024 * 1024;

/** Creates a repository with the raw image `a`, built as `debian`. */
async function setUp(t: TestContext): Promise<RepositoryFixture> {
  const fixture = await RepositoryFixture.open(t);
  await fixture.repository.add('a', 'debian', async ({ staging }) => {
    execFileSync('qemu-img', ['create', '-q', '-f', 'raw', staging.path('a.raw'), '4M']);
    const files = await describeFiles(staging, 'a', ['raw']);
    return { version: 1, 'image-id': 'a', 'image-name': 'debian', files };
  });
  fixture.events.length = 0;
  return fixture;
}

function stagingOf({ directory }: RepositoryFixture): Promise<string[]> {
  return readdir(join(directory, '.nodepool-builder', 'staging'));
}

test('an image’s file is returned in the first present format', async (t) => {
  const fixture = await setUp(t);
  const file = await fixture.repository.file('a', ['qcow2', 'raw']);
  assert.equal(file, fixture.repository.get('a')?.files[0]);
  assert.deepEqual(fixture.events, []);
});

test('a file with other content has no checksums, even before the change was noticed', async (t) => {
  const fixture = await setUp(t);
  const { repository } = fixture;
  const checksums = repository.get('a')?.files[0]?.checksums;
  assert.ok(checksums);
  writeFileSync(fixture.path('a.raw'), Buffer.alloc(4 * MEBIBYTE, 1));
  const file = repository.file('a', ['raw']);
  assert.deepEqual(repository.get('a')?.files[0]?.checksums, checksums);
  assert.equal((await file).checksums, undefined);
});

test('a missing format is converted once for concurrent calls, and kept', async (t) => {
  const fixture = await setUp(t);
  const { repository } = fixture;
  const ask = () => repository.file('a', ['tar', 'qcow2']);
  const conversions: string[] = [];
  repository.on('converted', (format, milliseconds) => conversions.push(`${format} ${milliseconds > 0}`));
  const [one, other] = await Promise.all([ask(), ask()]);
  assert.equal(one, other);
  assert.equal(await ask(), one);
  assert.deepEqual(conversions, ['qcow2 true']);
  assert.equal(one.path, fixture.path('a.qcow2'));
  execFileSync('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', fixture.path('a.raw'), one.path]);
  assert.deepEqual(fixture.events, []);
  assert.deepEqual(await stagingOf(fixture), []);
});

test('a conversion is compressed if requested', async (t) => {
  const { repository } = await setUp(t);
  await repository.add('b', 'debian', async ({ staging }) => {
    writeFileSync(staging.path('b.raw'), Buffer.alloc(MEBIBYTE, 'compressible '));
    const files = await describeFiles(staging, 'b', ['raw']);
    return { version: 1, 'image-id': 'b', 'image-name': 'debian', files };
  });
  const { path, size } = await repository.file('b', ['qcow2'], { compress: true });
  assert.ok(size < MEBIBYTE, `${path} has ${size} bytes`);
});

test('a converted file has its checksums from the beginning', async (t) => {
  const { repository } = await setUp(t);
  const file = await repository.file('a', ['qcow2']);
  assert.deepEqual(file.checksums, await checksumsOf(file.path));
  assert.ok(repository.get('a')?.files.includes(file));
});

test('a file that was added next to a built image has no checksums', async (t) => {
  const fixture = await setUp(t);
  const { repository } = fixture;
  await fixture.write('a.tar');
  await waitUntil('the file', () => repository.get('a')?.files.length === 2);
  assert.equal((await repository.file('a', ['tar'])).checksums, undefined);
  assert.ok((await repository.file('a', ['raw'])).checksums);
});

test('formats that are converted at the same time all keep their checksums', async (t) => {
  const { repository } = await setUp(t);
  await Promise.all((['qcow2', 'vhd', 'vmdk'] as const).map((format) => repository.file('a', [format])));
  for (const { format, checksums } of repository.get('a')?.files ?? []) {
    assert.ok(checksums !== undefined, `${format} has no checksums`);
  }
});

test('the metadata of an image survives a conversion and a restart', async (t) => {
  const fixture = await setUp(t);
  const before = fixture.repository.get('a');
  await fixture.repository.file('a', ['vhd']);
  await fixture.close();
  const image = (await fixture.open()).get('a');
  assert.deepEqual({ ...image, files: [] }, { ...before, files: [] });
  assert.deepEqual(
    image?.files.map(({ format, checksums }) => [format, checksums !== undefined]),
    [
      ['raw', true],
      ['vhd', true],
    ],
  );
});

test('a format that was removed by hand is converted again', async (t) => {
  const fixture = await setUp(t);
  await fixture.repository.file('a', ['qcow2']);
  await fixture.close();
  await rm(fixture.path('a.qcow2'));
  const repository = await fixture.open();
  const file = await repository.file('a', ['qcow2']);
  assert.ok(file.checksums);
  const manifest = await readManifest(new Layout(repository.directory).manifest('a'), 'a');
  assert.deepEqual(
    manifest?.files.map(({ format }) => format),
    ['raw', 'qcow2'],
  );
});

test('an image that was added by hand is converted, and still has no name', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  await fixture.write('a.raw', Buffer.alloc(MEBIBYTE, 'x'));
  const repository = await fixture.open();
  const { size } = await repository.file('a', ['vmdk']);
  assert.ok(size > 0);
  const image = repository.get('a');
  assert.equal(image?.name, undefined);
  assert.deepEqual(
    image?.files.map(({ format }) => format),
    ['raw', 'vmdk'],
  );
});

test('an image that refers to a file of the host is neither converted nor offered', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  await fixture.write('secret', Buffer.alloc(MEBIBYTE, 'x'));
  const args = ['create', '-q', '-f', 'qcow2', '-b', fixture.path('secret'), '-F', 'raw'];
  execFileSync('qemu-img', [...args, fixture.path('a.qcow2')]);
  const repository = await fixture.open();
  for (const format of ['raw', 'qcow2'] as const) {
    await assert.rejects(
      repository.file('a', [format]),
      withCode('image-not-self-contained', /names another file, ".*\/secret"/),
    );
  }
  assert.deepEqual([...(await readdir(fixture.directory))].toSorted(), [
    '.nodepool-builder',
    'a.qcow2',
    'secret',
  ]);
});

test('a request for an unavailable image or format is rejected', async (t) => {
  const fixture = await setUp(t);
  await fixture.write('b.tar');
  const { repository } = fixture;
  if (repository.get('b') === undefined) await fixture.next('added');
  const refuse = async (
    id: string,
    formats: readonly string[],
    message: RegExp,
    code: 'format-unavailable' | 'format-unknown' | 'image-not-found',
  ) => {
    await assert.rejects(repository.file(id, formats as ImageFormat[]), withCode(code, message));
  };
  await refuse('missing', ['raw'], /image missing does not exist here/, 'image-not-found');
  await refuse('a', ['tar', 'iso'], /image a exists as raw, .* to tar or iso/, 'format-unavailable');
  await refuse('a', [], /to nothing/, 'format-unavailable');
  await refuse('a', ['qcow3'], /"qcow3"/, 'format-unknown');
  await refuse('b', ['raw'], /image b exists as tar/, 'format-unavailable');
});

test('a conversion is aborted once its last caller aborts', async (t) => {
  const fixture = await setUp(t);
  const { repository } = fixture;
  const abort = new AbortController();
  const alone = repository.file('a', ['qcow2'], { signal: abort.signal });
  abort.abort();
  await assert.rejects(alone, withCode('build-aborted', /converting image a to qcow2 was aborted/));
  assert.deepEqual(await stagingOf(fixture), []);
  assert.equal(repository.get('a')?.files.length, 1);

  const second = new AbortController();
  const left = repository.file('a', ['qcow2'], { signal: second.signal });
  const stays = repository.file('a', ['qcow2']);
  second.abort();
  await assert.rejects(left, withCode('build-aborted'));
  assert.equal((await stays).format, 'qcow2');
});

test('a conversion that is aborted while the new file is read for its checksums adds no file', async (t) => {
  const fixture = await setUp(t);
  const { repository } = fixture;
  const abort = new AbortController();
  const conversion = repository.file('a', ['qcow2'], {
    signal: abort.signal,
    onProgress: ({ done }) => done > 90 && abort.abort(),
  });
  await assert.rejects(conversion, withCode('build-aborted'));
  assert.deepEqual(await stagingOf(fixture), []);
  assert.equal(repository.get('a')?.files.length, 1);
});

test('deleting an image aborts its conversion', async (t) => {
  const fixture = await setUp(t);
  const { repository } = fixture;
  const conversion = repository.file('a', ['qcow2']);
  const deletion = repository.delete('a');
  await assert.rejects(repository.file('a', ['qcow2']), withCode('image-not-found'));
  await assert.rejects(conversion, withCode('image-not-found'));
  await deletion;
  assert.deepEqual(await readdir(fixture.directory), ['.nodepool-builder']);
});

test('a failed conversion leaves no file, and can be retried', async (t) => {
  const fixture = await setUp(t);
  // Blocks the path of the manifest.
  const manifest = new Layout(fixture.repository.directory).manifest('a');
  execFileSync('rm', [manifest]);
  await mkdir(join(manifest, 'directory'), { recursive: true });
  await assert.rejects(fixture.repository.file('a', ['qcow2']), { code: 'EISDIR' });
  assert.deepEqual((await readdir(fixture.directory)).toSorted(), ['.nodepool-builder', 'a.raw']);
  assert.deepEqual(await stagingOf(fixture), []);
  execFileSync('rm', ['-r', manifest]);
  await fixture.repository.file('a', ['qcow2']);
});
