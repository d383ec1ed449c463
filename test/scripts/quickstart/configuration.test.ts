import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfiguration } from 'nodepool-builder';
import { quickstartConfiguration, withoutImages } from '../../../scripts/quickstart/configuration.ts';

const root = join(import.meta.dirname, '../../..');
const templateFile = join(root, 'examples/quickstart/nodepool.yaml');

test("the quickstart's nodepool.yaml is valid unchanged", async () => {
  const { warnings } = await loadConfiguration(templateFile);
  assert.deepEqual(warnings, []);
});

test("the quickstart fills the template with this machine's settings", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'quickstart-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(
    file,
    quickstartConfiguration(await readFile(templateFile, 'utf8'), templateFile, {
      port: 4731,
      proxy: 'http://127.0.0.1:3128',
      cacheDirectory: '/cache',
    }),
  );

  const { configuration, warnings } = await loadConfiguration(file);

  assert.deepEqual(warnings, []);
  assert.equal(configuration['images-dir'], join(root, 'quickstart-data/images'));
  assert.equal(configuration['build-log-dir'], join(root, 'quickstart-data/logs'));
  assert.equal(configuration.manager.store, join(root, 'quickstart-data/state/manager.sqlite'));
  assert.deepEqual(configuration['gearman-servers'], [{ host: '127.0.0.1', port: 4731 }]);
  const [debian] = configuration.diskimages;
  assert.equal(debian?.name, 'debian');
  assert.equal(debian.elementsDir, join(root, 'examples/on-instance/elements'));
  assert.deepEqual(debian.formats.toSorted(), ['qcow2', 'raw']);
  assert.partialDeepStrictEqual(debian.envVars, {
    DIB_DEBOOTSTRAP_CACHE: '1',
    DIB_LOCKFILES: '/cache/locks',
    http_proxy: 'http://127.0.0.1:3128',
  });
  assert.deepEqual(
    configuration.providers.map(({ entry }) => entry.directory),
    [join(root, 'quickstart-data/served'), join(root, 'quickstart-data/served')],
  );
});

test('the quickstart without images has the same providers and no uploads', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'quickstart-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, withoutImages(await readFile(templateFile, 'utf8')));
  const { configuration, warnings } = await loadConfiguration(file);
  assert.deepEqual(warnings, []);
  assert.deepEqual(configuration.diskimages, []);
  assert.deepEqual(
    configuration.providers.map(({ name, entry }) => [name, entry.images]),
    [
      ['local', []],
      ['local-raw', []],
    ],
  );
});
