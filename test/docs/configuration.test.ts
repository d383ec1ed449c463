import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatFault, loadConfiguration } from 'nodepool-builder';
import { loadAccessList } from '../../packages/nodepool-builder/src/configuration/access-list.ts';
import { CONFIGURATION_SCHEMA } from '../../packages/nodepool-builder/src/configuration/schema.ts';
import { readLogSettings } from '../../packages/nodepool-builder/src/logging/log-settings.ts';
import { configurationTables } from '../../scripts/docs/configuration-tables.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/configuration.md');

test('docs/configuration.md has the keys of the schema (npm run docs)', () => {
  assert.ok(page.includes(`\n${configurationTables(CONFIGURATION_SCHEMA)}\n`));
});

test('the access list of docs/configuration.md can be used', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'access.yaml');
  await writeFile(file, codeBlocks(page, 'yaml')[0] ?? '');
  const { operator } = await loadAccessList(file);
  assert.deepEqual(operator, { submit: [''], register: [''], administer: [''] });
});

test('the logging configuration of docs/configuration.md can be used', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'logging.yaml');
  await writeFile(file, codeBlocks(page, 'yaml')[1] ?? '');
  const { loggers, outputs } = await readLogSettings(file);
  assert.deepEqual(loggers, { gear: 'warn', 'nodepool.image.build': 'silent' });
  assert.deepEqual(
    outputs.map(({ type }) => type),
    ['stderr', 'file'],
  );
});

test('the warning that docs/configuration.md shows is what one gets', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, 'images-dir: images\ndiskimages:\n  - name: debian\n    elments: [vm]\n');
  const { warnings } = await loadConfiguration(file);
  const shown = warnings.map((warning) => `${formatFault('nodepool.yaml', warning)}\n`);
  assert.deepEqual(shown, codeBlocks(page, ''));
});
