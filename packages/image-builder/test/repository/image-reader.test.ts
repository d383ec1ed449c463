import assert from 'node:assert/strict';
import { appendFile, mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import type { Image } from '../../src/index.ts';
import { MANIFEST, manifestTime } from '../../src/manifest.ts';
import { readImage, readImages } from '../../src/repository/image-reader.ts';
import { Layout } from '../../src/repository/layout.ts';
import { SettledFiles } from '../../src/repository/settled-files.ts';

const FINISHED = '2026-11-21T12:01:00.000Z';

class Fixture {
  readonly layout: Layout;
  readonly logger: RecordingLogger = new RecordingLogger();

  constructor(root: string) {
    this.layout = new Layout(root);
  }

  async write(name: string): Promise<void> {
    await writeFile(join(this.layout.root, name), 'content');
  }

  /** Describes the current `a.raw`. */
  async describe(): Promise<void> {
    const { size, mtimeMs } = await stat(this.layout.image('a', 'raw'));
    const file = { format: 'raw', size, mtime: manifestTime(mtimeMs), md5: 'm', sha256: 's' } as const;
    const manifest = { version: 1, 'image-id': 'a', 'image-name': 'debian', finished: FINISHED } as const;
    await MANIFEST.write(this.layout.manifest('a'), { ...manifest, files: [file] });
  }

  async read(): Promise<Image | undefined> {
    const settled = new SettledFiles(this.layout.root);
    await settled.check(['a.raw', 'a.qcow2', 'a.squash'], () => 'moved');
    settled.close();
    return await readImage('a', this.layout, settled, this.logger);
  }
}

async function setUp(t: TestContext): Promise<Fixture> {
  const fixture = new Fixture(await temporaryDirectory(t));
  await fixture.layout.create();
  return fixture;
}

test('an image id without a file has no image', async (t) => {
  const fixture = await setUp(t);
  await fixture.write('b.raw');
  assert.equal(await fixture.read(), undefined);
});

test('an image that was built here has its name, its time and its checksums', async (t) => {
  const fixture = await setUp(t);
  for (const name of ['a.raw', 'a.squash']) await fixture.write(name);
  await fixture.describe();
  const image = await fixture.read();
  assert.equal(image?.name, 'debian');
  assert.equal(image.builtAt.toISOString(), FINISHED);
  assert.deepEqual(image.files, [
    { format: 'raw', path: fixture.layout.image('a', 'raw'), size: 7, checksums: { md5: 'm', sha256: 's' } },
    { format: 'squashfs', path: fixture.layout.image('a', 'squashfs'), size: 7 },
  ]);
});

test('an image that was added by hand has its newest file’s time as build time', async (t) => {
  const fixture = await setUp(t);
  for (const name of ['a.raw', 'a.qcow2']) await fixture.write(name);
  await utimes(fixture.layout.image('a', 'raw'), 1_000, 1_000);
  await utimes(fixture.layout.image('a', 'qcow2'), 2_000, 2_000);
  const image = await fixture.read();
  assert.deepEqual(image?.builtAt, new Date(2_000_000));
  assert.ok(!('name' in image));
});

const CHANGES: Readonly<Record<string, (path: string) => Promise<void>>> = {
  'another length': (path) => appendFile(path, 'more'),
  'another modification time': (path) => utimes(path, 1_000, 1_000),
};

for (const [what, change] of Object.entries(CHANGES)) {
  test(`an image file with ${what} has no checksums`, async (t) => {
    const fixture = await setUp(t);
    await fixture.write('a.raw');
    await fixture.describe();
    await change(fixture.layout.image('a', 'raw'));
    assert.equal((await fixture.read())?.files[0]?.checksums, undefined);
  });
}

test('a damaged manifest of an image file is logged and ignored', async (t) => {
  const fixture = await setUp(t);
  await fixture.write('a.raw');
  await writeFile(fixture.layout.manifest('a'), '{');
  assert.equal((await fixture.read())?.name, undefined);
  assert.match(fixture.logger.lines.join('\n'), /^warn the manifest ".*a\.json" is damaged: it is not JSON/);
});

test('a directory’s images are listed without changing it', async (t) => {
  const directory = await temporaryDirectory(t);
  for (const name of ['1.raw', '1.qcow2', '2.vhd', '.hidden.raw', '3.txt', '4.raw.md5', 'a b.raw']) {
    await writeFile(join(directory, name), 'content');
  }
  await mkdir(join(directory, '5.raw'));
  const before = await readdir(directory);
  const formats = (await readImages(directory)).map(({ id, files }) => [
    id,
    files.map(({ format }) => format),
  ]);
  assert.deepEqual(Object.fromEntries(formats), { 1: ['qcow2', 'raw'], 2: ['vhd'] });
  assert.deepEqual(await readdir(directory), before);
});

test('the error for a missing directory of images names it', async (t) => {
  const missing = join(await temporaryDirectory(t), 'missing');
  await assert.rejects(
    readImages(missing),
    withCode('directory-not-usable', /missing.*create the directory/),
  );
});
