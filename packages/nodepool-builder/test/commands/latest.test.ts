// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { DirectoryProvider } from '@nodepool-builder/image-builder';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { main } from '../../src/commands/main.ts';

/** Creates a directory with two images of debian and one of ubuntu. The newer image of debian has the older file. */
async function createPool(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'latest-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const pool = join(directory, 'pool');
  await mkdir(pool);
  const provider = new DirectoryProvider({ name: 'pool', directory: pool });
  for (const [imageName, imageId, day] of [
    ['debian', '2', 2],
    ['debian', '1', 1],
    ['ubuntu', '3', 3],
  ] as const) {
    const path = join(directory, `${imageId}.qcow2`);
    await writeFile(path, imageId);
    const { externalId } = await provider.upload({
      uploadId: imageId,
      imageId,
      imageName,
      builtAt: new Date(Date.UTC(2026, 4, day)),
      file: { format: 'qcow2', path, size: 1 },
    });
    const touched = new Date(Date.UTC(2026, 5, 10 - day));
    await utimes(join(pool, externalId), touched, touched);
  }
  return directory;
}

/** Runs the command in this process. */
async function latest(
  t: TestContext,
  ...args: readonly string[]
): Promise<[code: number, stdout: string, stderr: string]> {
  const printed = ['log', 'error'].map((stream) => t.mock.method(console, stream as 'log', () => {}));
  const code = await main(['latest', ...args]);
  const [stdout = '', stderr = ''] = printed.map(({ mock }) =>
    mock.calls.map((call) => String(call.arguments[0])).join('\n'),
  );
  t.mock.restoreAll();
  return [code, stdout, stderr];
}

test('the command latest prints only the id, and compares build times, not file times', async (t) => {
  const provider = `directory:${await createPool(t)}/pool`;
  const [code, stdout, stderr] = await latest(t, '--provider', provider, '--filter', 'name=debian-*');
  assert.deepEqual([code, stdout, stderr], [0, 'debian-2.qcow2', '']);
});

test('the command latest reads a provider from nodepool.yaml, with --explain and --json', async (t) => {
  const directory = await createPool(t);
  const config = join(directory, 'nodepool.yaml');
  const own = [
    { name: 'newest', 'image-filters': [{ name: 'image-name', values: ['ubuntu', 'debian'] }] },
    { name: 'fixed', 'image-id': 'debian-1.qcow2' },
  ];
  const providers = [
    { name: 'local', type: 'directory', directory: 'pool', images: [], 'cloud-images': own },
  ];
  const top = [{ name: 'debian', 'image-filters': [{ name: 'name', values: ['debian-*'] }] }];
  await writeFile(config, JSON.stringify({ 'images-dir': 'images', providers, 'cloud-images': top }));
  const args = ['-c', config, '--provider', 'local', '--filter', 'image-name=debian', '--explain'];
  const [code, stdout, stderr] = await latest(t, ...args);
  assert.deepEqual([code, stdout], [0, 'debian-2.qcow2']);
  assert.match(
    stderr,
    /^EXTERNAL-ID +NAME +CREATED +BUILT +REASON\ndebian-2\.qcow2 +- .* 2026-05-0\d \d\d:\d\d +most recent image\ndebian-1\.qcow2 +- .* not chosen: it was\s+built\s+earlier,\s+at\s+2026-05-01T00:00:00\.000Z$/,
  );
  const file = join(directory, 'latest.json');
  const [, json] = await latest(t, ...args, '--json', '--json-file', file);
  assert.equal(await readFile(file, 'utf8'), `${json}\n`);
  const { refused, ...found } = JSON.parse(json);
  assert.deepEqual(
    { ...found, created: undefined, refused: refused.map((image: object) => Object.keys(image)) },
    {
      'external-id': 'debian-2.qcow2',
      name: 'debian-2.qcow2',
      'image-name': 'debian',
      owner: null,
      status: 'whole',
      created: undefined,
      built: '2026-05-02T00:00:00.000Z',
      refused: [['external-id', 'name', 'image-name', 'owner', 'status', 'created', 'built', 'reason']],
    },
  );
  const byCloudImage = ['-c', config, '--provider', 'local', '--cloud-image'];
  assert.deepEqual(await latest(t, ...byCloudImage, 'newest'), [0, 'ubuntu-3.qcow2', '']);
  assert.deepEqual(await latest(t, ...byCloudImage, 'debian'), [0, 'debian-2.qcow2', '']);
  assert.deepEqual(await latest(t, ...byCloudImage, 'fixed', '--json'), [
    0,
    '{\n  "external-id": "debian-1.qcow2"\n}',
    '',
  ]);
  assert.deepEqual(await latest(t, ...byCloudImage, 'bsd'), [
    3,
    '',
    'nodepool-builder: provider "local" has no cloud image "bsd"; choose one of: newest, fixed, debian',
  ]);
  const missing = await latest(t, '-c', config, '--provider', 'cloud');
  assert.deepEqual(missing, [
    3,
    '',
    `nodepool-builder: provider "cloud" is not in ${config}; choose one of: local`,
  ]);
});

test('the command latest fails with the reasons if no image passes the filters', async (t) => {
  const provider = `directory:${await createPool(t)}/pool`;
  const args = ['--provider', provider, '--filter', 'property:os=bsd'];
  assert.deepEqual(await latest(t, ...args, '--filter', 'name=debian-*'), [
    3,
    '',
    `nodepool-builder: no image in provider "${provider}" matches the filters; 2 with a matching name: its property os is unknown, not bsd (2)`,
  ]);
  assert.deepEqual(await latest(t, ...args, '--filter', 'name=bsd', '--json'), [
    3,
    '{\n  "external-id": null\n}',
    `nodepool-builder: no image in provider "${provider}" matches the filters: none has a matching name`,
  ]);
  const [code, , stderr] = await latest(t, '--provider', provider, '--filter', 'status=active');
  assert.equal(code, 2);
  assert.match(stderr, /^nodepool-builder: image filter: unknown key "status"; use one of name, /);
});
