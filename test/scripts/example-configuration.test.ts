import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfiguration } from 'nodepool-builder';
import { exampleConfiguration } from '../../scripts/example-configuration.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const root = join(import.meta.dirname, '../..');
const templateFile = join(root, 'examples/on-instance/nodepool.yaml');

test('the on-instance example’s configuration works in any directory, and has its own port', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'example-on-instance-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(
    file,
    exampleConfiguration(await readFile(templateFile, 'utf8'), templateFile, {
      port: 4731,
      command: 'npm run example',
    }),
  );
  const written = await loadConfiguration(file);
  const template = await loadConfiguration(templateFile);
  assert.deepEqual(written.warnings, []);
  assert.deepEqual(written.configuration, {
    ...template.configuration,
    file,
    'gearman-servers': [{ host: '127.0.0.1', port: 4731 }],
  });
});
