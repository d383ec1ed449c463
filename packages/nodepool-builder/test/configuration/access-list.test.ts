import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadAccessList } from '../../src/configuration/option-files.ts';
import { ConfigurationError } from '../../src/yaml/diagnostic.ts';

/** Returns the rules in a text, or its diagnostics, one per line and without the directory. */
async function loaded(text: string): Promise<unknown> {
  const directory = await mkdtemp(join(tmpdir(), 'access-list-'));
  try {
    const file = join(directory, 'access.yaml');
    await writeFile(file, text);
    return await loadAccessList(file);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.message.replaceAll(`${directory}/`, '').split('\n');
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('an access list maps names to rights, and rights to prefixes', async () => {
  assert.deepEqual(await loaded('zuul.example.org: { submit: ["image-", ""] }\nidle: {}\n'), {
    'zuul.example.org': { submit: ['image-', ''] },
    idle: {},
  });
  assert.deepEqual(await loaded('{}'), {});
});

const DIAGNOSTICS: Readonly<Record<string, readonly string[]>> = {
  '': [
    'access.yaml:1:1: the file must be a mapping, but is empty; write "key: value" pairs, indented below it',
  ],
  'a:\n': ['access.yaml:1:1: a must be a mapping, but is empty; write "key: value" pairs, indented below it'],
  'a: { sumbit: [f] }\n': [
    'access.yaml:1:6: a has the unknown key "sumbit"; use one of submit, register, administer',
  ],
  'a:\n  submit: f\n': [
    'access.yaml:2:3: a.submit must be a list, but is a string; write a list, each entry after "- "',
  ],
  'a:\n  submit:\n    - 1\n    - [f]\n': [
    'access.yaml:3:7: a.submit[0] must be a string, but is a number; put it in quotes',
    'access.yaml:4:7: a.submit[1] must be a string, but is a list; put it in quotes',
  ],
  'a: {}\na: {}\n': ['access.yaml:2:1: duplicated mapping key; correct the YAML there'],
};

for (const [text, diagnostics] of Object.entries(DIAGNOSTICS)) {
  test(`an access list that contains ${JSON.stringify(text)} is rejected`, async () => {
    assert.deepEqual(await loaded(text), diagnostics);
  });
}

test('the error for a missing access list names the file and the option', async () => {
  await assert.rejects(loadAccessList('/missing/access.yaml'), {
    name: 'ConfigurationError',
    message: /^\/missing\/access\.yaml:1:1: cannot read the file: .*; correct --access-list FILE$/,
  });
});
