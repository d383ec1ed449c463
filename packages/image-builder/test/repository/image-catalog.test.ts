import assert from 'node:assert/strict';
import { mkdir, open, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import type { Image } from '../../src/index.ts';
import { MANIFEST } from '../../src/manifest.ts';
import { ImageCatalog } from '../../src/repository/image-catalog.ts';
import { Layout } from '../../src/repository/layout.ts';
import { describeFiles } from '../../src/repository/publication.ts';
import { SettledFiles } from '../../src/repository/settled-files.ts';
import { Staging } from '../../src/repository/staging.ts';

class Fixture {
  readonly layout: Layout;
  readonly catalog: ImageCatalog;
  readonly events: string[] = [];
  #told = Promise.withResolvers<void>();

  constructor(root: string) {
    this.layout = new Layout(root);
    const tell = (what: string, { id, files }: Image): void => {
      this.events.push(`${what} ${id} ${files.map(({ format }) => format).join()}`);
      this.#told.resolve();
      this.#told = Promise.withResolvers();
    };
    this.catalog = new ImageCatalog(this.layout, { onImage: tell, onReturn: () => Promise.resolve() });
  }

  /** Resolves at the next event. */
  get told(): Promise<void> {
    return this.#told.promise;
  }

  async put(name: string): Promise<void> {
    await writeFile(join(this.layout.root, name), 'content');
  }

  async putManifest(imageId: string): Promise<void> {
    const manifest = { version: 1, 'image-id': imageId, 'image-name': 'debian', files: [] } as const;
    await MANIFEST.write(this.layout.manifest(imageId), manifest);
  }

  /** Publishes an image as raw and qcow2. */
  async publish(imageId: string): Promise<Image> {
    const staging = await Staging.create(this.layout.staging);
    for (const format of ['raw', 'qcow2']) await writeFile(staging.path(`${imageId}.${format}`), 'content');
    const files = await describeFiles(staging, imageId, ['raw', 'qcow2']);
    return await this.catalog.publish(staging, { version: 1, 'image-id': imageId, files });
  }

  /** Causes an event that arrives after all others. */
  async untilAllIsTold(file = 'last.raw'): Promise<void> {
    const { told } = this;
    await this.put(file);
    await told;
  }
}

async function setUp(t: TestContext): Promise<Fixture> {
  const root = await temporaryDirectory(t, () => fixture.catalog.close());
  const fixture = new Fixture(root);
  await fixture.layout.create();
  return fixture;
}

test('the image catalog reports all images at its start, and removes manifests without an image', async (t) => {
  const fixture = await setUp(t);
  for (const name of ['a.raw', 'a.vhd', 'b.qcow2']) await fixture.put(name);
  for (const imageId of ['a', 'gone']) await fixture.putManifest(imageId);
  await fixture.catalog.start();
  assert.deepEqual(fixture.events.toSorted(), ['added a raw,vhd', 'added b qcow2']);
  assert.equal(fixture.catalog.images.get('a')?.name, 'debian');
  assert.deepEqual(await readdir(fixture.layout.manifests), ['a.json']);
});

test('the image catalog reports all images, even if there are more than it reads at a time', async (t) => {
  const fixture = await setUp(t);
  const ids = Array.from({ length: 150 }, (_, index) => `image-${index}`);
  await Promise.all(ids.map((id) => fixture.put(`${id}.raw`)));
  await fixture.catalog.start();
  assert.deepEqual([...fixture.catalog.images.keys()].toSorted(), ids.toSorted());
});

test('a published image is reported once, with all its formats and checksums', async (t) => {
  const fixture = await setUp(t);
  await fixture.catalog.start();
  const image = await fixture.publish('a');
  assert.equal(fixture.catalog.images.get('a'), image);
  assert.ok(image.files.every(({ checksums }) => checksums !== undefined));
  await fixture.untilAllIsTold();
  assert.deepEqual(fixture.events, ['added a qcow2,raw', 'added last raw']);
});

test('a failed publication is not reported', async (t) => {
  const fixture = await setUp(t);
  await fixture.catalog.start();
  await mkdir(join(fixture.layout.manifest('a'), 'in the way'), { recursive: true });
  await assert.rejects(fixture.publish('a'), { code: 'EISDIR' });
  await fixture.untilAllIsTold();
  assert.deepEqual(fixture.events, ['added last raw']);
  assert.deepEqual([...fixture.catalog.images.keys()], ['last']);
});

test('a withdrawn image is reported as removed once', async (t) => {
  const fixture = await setUp(t);
  await fixture.catalog.start();
  await fixture.publish('a');
  await fixture.catalog.withdraw('a');
  assert.deepEqual([...fixture.catalog.images.keys()], []);
  await fixture.untilAllIsTold();
  assert.deepEqual(fixture.events.slice(1), ['removed a qcow2,raw', 'added last raw']);
});

test('a failed withdrawal leaves the image, and is not reported', async (t) => {
  const fixture = await setUp(t);
  await fixture.catalog.start();
  await fixture.publish('a');
  await rm(fixture.layout.trash, { recursive: true });
  await assert.rejects(fixture.catalog.withdraw('a'), { code: 'ENOENT' });
  await fixture.untilAllIsTold();
  assert.deepEqual(fixture.events, ['added a qcow2,raw', 'added last raw']);
});

test('removing a format changes an image, and removing the last one removes the image and its manifest', async (t) => {
  const fixture = await setUp(t);
  await fixture.catalog.start();
  await fixture.publish('a');
  await rm(fixture.layout.image('a', 'raw'));
  await fixture.untilAllIsTold('later.raw');
  assert.deepEqual(
    fixture.catalog.images.get('a')?.files.map(({ format }) => format),
    ['qcow2'],
  );
  const removed = fixture.told;
  await rm(fixture.layout.image('a', 'qcow2'));
  await removed;
  await fixture.untilAllIsTold();
  assert.deepEqual(fixture.events.slice(1), ['added later raw', 'removed a qcow2', 'added last raw']);
  assert.deepEqual(await readdir(fixture.layout.manifests), []);
});

test('the image catalog reads all files once for each scan, not for each image that is removed', async (t) => {
  const fixture = await setUp(t);
  const ids = Array.from({ length: 100 }, (_, index) => `image-${index}`);
  for (const id of ids) await fixture.put(`${id}.raw`);
  await fixture.catalog.start();
  const names = t.mock.method(SettledFiles.prototype, 'names');
  for (const id of ids) await rm(fixture.layout.image(id, 'raw'));
  while (fixture.catalog.images.size > 0) await fixture.told;
  assert.equal(names.mock.callCount(), 0);
});

test('an image whose only file is rewritten keeps its manifest meanwhile', async (t) => {
  const fixture = await setUp(t);
  await fixture.put('a.raw');
  await fixture.putManifest('a');
  await fixture.catalog.start();
  const removed = fixture.told;
  const handle = await open(fixture.layout.image('a', 'raw'), 'a');
  await handle.write('more');
  await removed;
  const added = fixture.told;
  await handle.close();
  await added;
  assert.deepEqual(fixture.events, ['added a raw', 'removed a raw', 'added a raw']);
  assert.equal(fixture.catalog.images.get('a')?.name, 'debian');
});

test('a closed image catalog reports nothing', async (t) => {
  const fixture = await setUp(t);
  await fixture.catalog.start();
  await fixture.catalog.close();
  const other = new Fixture(fixture.layout.root);
  t.after(() => other.catalog.close());
  await other.catalog.start();
  await other.untilAllIsTold();
  assert.deepEqual(fixture.events, []);
});
