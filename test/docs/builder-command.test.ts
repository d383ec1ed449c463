import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfiguration } from 'nodepool-builder';
import { codeBlocks, readPage } from './markdown.ts';

const [complete = '', ...entries] = codeBlocks(await readPage('docs/builder-command.md'), 'yaml');
const section = complete.slice(0, complete.indexOf('  - name:'));

for (const [index, text] of [complete, ...entries.map((entry) => section + entry)].entries()) {
  test(`configuration ${index + 1} in docs/builder-command.md is valid, without a warning`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'builder-command-'));
    t.after(() => rm(directory, { recursive: true }));
    await writeFile(join(directory, 'nodepool.yaml'), text);
    const { configuration, warnings } = await loadConfiguration(join(directory, 'nodepool.yaml'));
    assert.deepEqual(warnings, []);
    assert.deepEqual(
      configuration.diskimages.map(({ builder }) => builder),
      ['command'],
    );
  });
}
