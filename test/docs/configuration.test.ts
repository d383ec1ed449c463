// Not a unit test: it runs python3.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DIB_VARIABLES, INHERITED_VARIABLES } from '@nodepool-builder/image-builder/internal';
import { formatDiagnostic, loadConfiguration } from 'nodepool-builder';
import { loadAccessList } from '../../packages/nodepool-builder/src/configuration/option-files.ts';
import { readLogSettings } from '../../packages/nodepool-builder/src/logging/read-log-settings.ts';
import { ALL_MODULES as MODULES } from '../../scripts/all-modules.ts';
import { configurationSections } from '../../scripts/docs/configuration-tables.ts';
import { variableList, variableTable } from '../../scripts/docs/variable-table.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/configuration.md');

function yamlBlockWith(text: string): string {
  return (
    codeBlocks(page, 'yaml').find((block) => block.includes(text)) ?? assert.fail(`no block with ${text}`)
  );
}

for (const [name, section, tables] of configurationSections(MODULES)) {
  test(`docs/${name} lists the configuration keys in its section "${section}" (npm run docs)`, async () => {
    assert.ok((await readPage(`docs/${name}`)).includes(`\n${tables}\n`));
  });
}

test('docs/configuration.md lists the variables that builds get (npm run docs)', () => {
  assert.ok(page.includes(`\n${variableTable(INHERITED_VARIABLES)}\n`));
});

test('docs/configuration.md lists the variables whose values are shown (npm run docs)', () => {
  assert.ok(page.includes(`\n${variableList(DIB_VARIABLES)}\n`));
});

test('the access list in docs/configuration.md is valid', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'access.yaml');
  await writeFile(file, yamlBlockWith('register:'));
  const { operator } = await loadAccessList(file);
  assert.deepEqual(operator, { submit: [''], register: [''], administer: [''] });
});

test('the YAML logging configuration in docs/configuration.md is valid', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'logging.yaml');
  await writeFile(file, yamlBlockWith('outputs:'));
  const { settings, warnings } = await readLogSettings(file);
  assert.deepEqual(warnings, []);
  assert.equal(settings.get('gear')?.level, 'warn');
  assert.equal(settings.get('nodepool.image.build')?.level, 'silent');
  assert.deepEqual(
    settings.get('')?.outputs.map(({ target }) => target.type),
    ['stderr', 'file'],
  );
});

test('the Python logging configuration in docs/configuration.md is valid', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'logging.conf');
  await writeFile(file, codeBlocks(page, 'ini')[0] ?? '');
  const { settings, warnings } = await readLogSettings(file);
  assert.deepEqual(warnings, []);
  const image = settings.get('nodepool.image.build');
  assert.equal(image?.propagate, false);
  assert.deepEqual(
    image.outputs.map(({ target }) => target.type === 'file' && target.rotation?.by),
    ['time'],
  );
});

test('docs/configuration.md shows the warning as it is printed', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, 'images-dir: images\ndiskimages:\n  - name: debian\n    elments: [vm]\n');
  const { warnings } = await loadConfiguration(file);
  const shown = warnings.map((warning) => `${formatDiagnostic('nodepool.yaml', warning)}\n`);
  assert.deepEqual(shown, codeBlocks(page, ''));
});
