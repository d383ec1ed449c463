import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { outputTables } from '../../../../scripts/docs/output-tables.ts';
import { ROOT, readPage } from '../../../../test/docs/markdown.ts';
import { OUTPUTS, outputSchemas } from '../../src/commands/output-schemas.ts';

const PACKAGE = 'packages/nodepool-builder';

describe('the JSON Schemas of the output (npm run docs)', () => {
  const schemas = outputSchemas();
  for (const [file, schema] of Object.entries(schemas)) {
    it(`${file} is up to date`, async () => {
      const written: unknown = JSON.parse(await readPage(`${PACKAGE}/${file}`));
      assert.deepEqual(written, JSON.parse(JSON.stringify(schema)));
    });
  }

  it('no file is left of a former schema', async () => {
    const files = (await readdir(`${ROOT}/${PACKAGE}/schemas`)).map((name) => `schemas/${name}`);
    assert.deepEqual(
      files.filter((file) => !(file in schemas)),
      [],
    );
  });

  it('are in the documents, each key with its meaning', async () => {
    assert.ok((await readPage('docs/command-line.md')).includes(`\n${outputTables(OUTPUTS)}\n`));
    for (const [name, { record }] of Object.entries(OUTPUTS)) {
      for (const [key, { description }] of Object.entries(record.properties)) {
        assert.match(description ?? '', /\.$/, `${name}: ${key}`);
      }
    }
  });
});
