import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, rename, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { Layout, WORKSPACE } from '../../src/repository/layout.ts';
import { describeFiles, publish } from '../../src/repository/publication.ts';
import { recover } from '../../src/repository/recovery.ts';
import { Staging } from '../../src/repository/staging.ts';

interface Fixture {
  readonly layout: Layout;
  readonly logger: RecordingLogger;
}

async function setUp(t: TestContext): Promise<Fixture> {
  const layout = new Layout(await temporaryDirectory(t));
  await layout.create();
  return { layout, logger: new RecordingLogger() };
}

/** Lists image files, except in the workspace. */
async function imageFiles({ layout }: Fixture): Promise<string[]> {
  return (await readdir(layout.root)).filter((name) => name !== WORKSPACE).toSorted();
}

/** Leaves a publication that was interrupted before its last image file was moved. */
async function cutShortPublication({ layout }: Fixture, imageId: string): Promise<void> {
  const staging = await Staging.create(layout.staging);
  for (const name of [`${imageId}.qcow2`, `${imageId}.raw`]) await writeFile(staging.path(name), 'content');
  const files = await describeFiles(staging, imageId, ['qcow2', 'raw']);
  await publish(layout, staging, { version: 1, 'image-id': imageId, files }, files);
  await rename(layout.manifest(imageId), staging.path('.manifest.json'));
  await rename(layout.image(imageId, 'raw'), staging.path(`${imageId}.raw`));
}

test('recovery does not change a clean directory', async (t) => {
  const fixture = await setUp(t);
  await writeFile(fixture.layout.image('a', 'raw'), 'content');
  await recover(fixture.layout, fixture.logger);
  assert.deepEqual(await imageFiles(fixture), ['a.raw']);
  assert.deepEqual(fixture.logger.lines, []);
});

test('recovery removes an interrupted build’s files', async (t) => {
  const fixture = await setUp(t);
  const staging = await Staging.create(fixture.layout.staging);
  await writeFile(staging.path('a.raw'), 'half an im');
  await recover(fixture.layout, fixture.logger);
  assert.deepEqual(await readdir(fixture.layout.staging), []);
  assert.deepEqual(await imageFiles(fixture), []);
  assert.match(
    fixture.logger.lines.join('\n'),
    /^info ".*stage-\w+": cleaned up after an interrupted build$/,
  );
});

test('recovery completes an interrupted publication', async (t) => {
  const fixture = await setUp(t);
  await cutShortPublication(fixture, 'a');
  assert.deepEqual(await imageFiles(fixture), ['a.qcow2']);
  await recover(fixture.layout, fixture.logger);
  assert.deepEqual(await imageFiles(fixture), ['a.qcow2', 'a.raw']);
  assert.deepEqual(await readdir(fixture.layout.manifests), ['a.json']);
  assert.deepEqual(await readdir(fixture.layout.staging), []);
  assert.match(fixture.logger.lines.join('\n'), /^info image a: completed its interrupted publication$/);
});

test('recovery completes an interrupted deletion, and empties the trash', async (t) => {
  const fixture = await setUp(t);
  const { layout } = fixture;
  for (const name of ['a.raw', 'ab.raw']) await writeFile(join(layout.root, name), 'content');
  await writeFile(join(layout.deletes, 'a'), '');
  await writeFile(join(layout.trash, 'a.qcow2'), 'moved before');
  await writeFile(join(layout.trash, 'b.raw'), 'of another');
  await recover(layout, fixture.logger);
  assert.deepEqual(await imageFiles(fixture), ['ab.raw']);
  assert.deepEqual(await readdir(layout.trash), []);
  assert.deepEqual(await readdir(layout.deletes), []);
  assert.deepEqual(await readdir(layout.deleted), ['a'], 'its job may come again');
});

test('recovery of an interrupted publication with a deletion ends with the deletion', async (t) => {
  const fixture = await setUp(t);
  await cutShortPublication(fixture, 'a');
  await writeFile(join(fixture.layout.deletes, 'a'), '');
  await recover(fixture.layout, fixture.logger);
  assert.deepEqual(await imageFiles(fixture), []);
  assert.deepEqual(await readdir(fixture.layout.manifests), []);
});

test('a failed cleanup during recovery is logged, and does not stop the others', async (t) => {
  const fixture = await setUp(t);
  const [stuck, fine] = [
    await Staging.create(fixture.layout.staging),
    await Staging.create(fixture.layout.staging),
  ];
  await writeFile(stuck.path('.process-groups'), 'damaged\n');
  await writeFile(fine.path('a.raw'), 'content');
  await recover(fixture.layout, fixture.logger);
  assert.deepEqual(await readdir(fixture.layout.staging), [stuck.directory.split('/').at(-1)]);
  assert.equal(await readFile(stuck.path('.process-groups'), 'utf8'), 'damaged\n');
  assert.match(fixture.logger.lines.join('\n'), /error cannot clean up ".*": Error: it is not JSON/);
});

test('recovery undoes mounts before it removes files, so that the host’s files stay', async (t) => {
  const fixture = await setUp(t);
  const host = join(await temporaryDirectory(t), 'dev');
  await mkdir(host);
  await writeFile(join(host, 'null'), 'the host’s own');
  const staging = await Staging.create(fixture.layout.staging);
  const chroot = staging.path('tmp/dib_build.X/mnt/dev');
  await mkdir(chroot, { recursive: true });
  execFileSync('mount', ['--bind', host, chroot]);
  await recover(fixture.layout, fixture.logger);
  assert.deepEqual(await readdir(fixture.layout.staging), []);
  assert.deepEqual(await readdir(host), ['null']);
});

test('recovery warns about names that are not UTF-8, and leaves files with the decoded names', async (t) => {
  const fixture = await setUp(t);
  const { layout, logger } = fixture;
  const old = new Date(0);
  for (const directory of [layout.staging, layout.deletes, layout.state, layout.cache]) {
    const path = Buffer.concat([Buffer.from(`${directory}/a`), Buffer.from([0xe9])]);
    await mkdir(directory, { recursive: true });
    await mkdir(path);
    await utimes(path, old, old);
  }
  await writeFile(layout.image('a\uFFFD', 'raw'), 'content');
  await recover(layout, logger);
  assert.deepEqual(await imageFiles(fixture), ['a\uFFFD.raw']);
  for (const name of ['staging', 'deletes', 'state', 'cache']) {
    assert.deepEqual(await readdir(layout[name as 'staging']), ['a\uFFFD']);
    const warning = new RegExp(`^warn ignoring ".*/${name}/a\uFFFD": its name is not UTF-8; remove it$`, 'm');
    assert.match(logger.lines.join('\n'), warning);
  }
});
