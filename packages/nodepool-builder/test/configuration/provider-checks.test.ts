import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadConfiguration } from '../../src/configuration/load.ts';

let directory: string;
let file: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'image-filters-'));
  file = join(directory, 'nodepool.yaml');
});
after(() => rm(directory, { recursive: true }));

/** A file with `image-filters` on line 8. */
async function write(filters: string): Promise<void> {
  const provider =
    '\nproviders:\n  - name: p\n    type: directory\n    directory: d\n    images:\n      - name: a\n';
  await writeFile(file, `images-dir: i${provider}        image-filters: ${filters}\n`);
}

test('image-filters are read unchanged, with their values as text', async () => {
  await write('[{name: name, values: ["debian-*"]}, {name: "property:min_disk", values: [10, true]}]');
  const { configuration } = await loadConfiguration(file);
  assert.deepEqual(configuration.providers[0]?.entry.images[0]?.['image-filters'], [
    { name: 'name', values: ['debian-*'] },
    { name: 'property:min_disk', values: ['10', 'True'] },
  ]);
});

for (const [filters, reason] of [
  [
    '[{name: state, values: [available]}]',
    /nodepool\.yaml:8:9: .*image-filters is invalid: .* unknown key "state"; use one of name, /,
  ],
  ['[{name: name, values: []}]', /nodepool\.yaml:8:9: .*image-filters is invalid: .*"name" has no values/],
  ['[{name: name}]', /nodepool\.yaml:8:\d+: .*image-filters\[0\].*"values"/],
] as const) {
  test(`image-filters ${filters} are rejected with their line`, async () => {
    await write(filters);
    await assert.rejects(loadConfiguration(file), reason);
  });
}
