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
    it(`the JSON Schema ${file} is up to date (npm run docs)`, async () => {
      const written: unknown = JSON.parse(await readPage(`${PACKAGE}/${file}`));
      assert.deepEqual(written, JSON.parse(JSON.stringify(schema)));
    });
  }

  it('the package contains no outdated JSON Schema', async () => {
    const files = (await readdir(`${ROOT}/${PACKAGE}/schemas`)).map((name) => `schemas/${name}`);
    assert.deepEqual(
      files.filter((file) => !(file in schemas)),
      [],
    );
  });

  it('the output’s keys are in the documents, each with its meaning (npm run docs)', async () => {
    assert.ok((await readPage('docs/command-line.md')).includes(`\n${outputTables(OUTPUTS)}\n`));
    for (const [name, { record }] of Object.entries(OUTPUTS)) {
      for (const [key, { description }] of Object.entries(record.properties)) {
        assert.match(description ?? '', /\.$/, `${name}: ${key}`);
      }
    }
  });
});
