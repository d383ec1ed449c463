import assert from 'node:assert/strict';
import { glob } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { createAjv } from '../../packages/image-builder/src/json-reader.ts';
import { jsonSchema } from '../../packages/nodepool-builder/src/configuration/schema.ts';
import { parseYaml } from '../../packages/nodepool-builder/src/yaml/yaml-document.ts';
import { ALL_MODULES as MODULES } from '../../scripts/all-modules.ts';
import { allPages, codeBlocks, ROOT, readPage } from './markdown.ts';

const FILE = 'packages/nodepool-builder/nodepool.schema.json';

const schema = JSON.parse(await readPage(FILE));
const validate = createAjv({ allErrors: true, allowUnionTypes: true, strictTypes: false }).compile(schema);
const known = await configurations();

/** Finds every nodepool.yaml in examples and documents, by path. */
async function configurations(): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for await (const file of glob('examples/**/nodepool.yaml', { cwd: ROOT })) {
    const text = await readPage(file);
    if (!text.includes('plugins:')) found.set(file, text); // the schema does not contain the keys of plugins
  }
  found.set(
    'a whole site',
    await readPage('packages/nodepool-builder/test/configuration/site/nodepool.yaml'),
  );
  for (const page of await allPages()) {
    for (const [index, block] of codeBlocks(await readPage(page), 'yaml').entries()) {
      // The schema contains the keys of the modules that nodepool-builder includes, without plugins.
      if (block.includes('plugins:')) continue;
      if (block.includes('images-dir:')) found.set(`${page}, block ${index}`, block);
    }
  }
  return found;
}

describe('the schema for editors', () => {
  it('the schema for editors is up to date (npm run docs)', () => {
    assert.deepEqual(schema, JSON.parse(JSON.stringify(jsonSchema(MODULES))));
  });

  for (const [name, text] of known) {
    it(`the schema for editors accepts ${name}`, () => {
      assert.equal(validate(parseYaml(name, text).value), true, JSON.stringify(validate.errors));
    });
  }

  it('the schema for editors reports an unknown key and an invalid value', () => {
    assert.equal(validate({ 'images-dir': '/i', diskimages: [{ name: 'a', elments: [] }] }), false);
    assert.deepEqual(
      validate.errors?.map(({ instancePath, params }) => [instancePath, params.additionalProperty]),
      [['/diskimages/0', 'elments']],
    );
    assert.equal(validate({ 'images-dir': 5 }), false);
  });

  it('the schema for editors describes keys for other parts of nodepool', () => {
    assert.equal(schema.properties.labels.description, 'For other parts of nodepool.');
    assert.equal(
      schema.properties.providers.items.properties.keypair.description,
      'For other parts of nodepool.',
    );
  });
});
