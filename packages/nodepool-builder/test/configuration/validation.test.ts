import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import type { ImageValidation } from '@nodepool-builder/image-builder';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

/** Loads a file whose disk image has a `validate`, starting at line 5. */
async function load(
  t: TestContext,
  validate: string,
): Promise<{ directory: string; read?: ImageValidation }> {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\ndiskimages:\n  - name: a\n    validate:\n${validate}\n`);
  const { configuration, warnings } = await loadConfiguration(file);
  assert.deepEqual(warnings, []);
  const read = configuration.diskimages[0]?.validation;
  return { directory, ...(read && { read }) };
}

it('a validation hook is split as a shell would, with paths relative to the file', async (t) => {
  const { directory, read } = await load(t, `      hook: ./check 'two words' "$x"`);
  assert.deepEqual(read, { hook: [join(directory, 'check'), 'two words', '$x'] });
  assert.deepEqual((await load(t, '      hook: [virt-inspector, -a]')).read, {
    hook: ['virt-inspector', '-a'],
  });
});

it('a boot test’s expected text is read as a regular expression', async (t) => {
  const { read } = await load(
    t,
    '      boot: {expect: "login: $", timeout: 90, memory: 512, accelerator: tcg}',
  );
  assert.deepEqual(read, { boot: { expect: /login: $/, timeout: 90, memory: 512, accelerator: 'tcg' } });
});

const DIAGNOSTICS: readonly (readonly [what: string, validate: string, diagnostic: string])[] = [
  [
    'an empty section',
    '      {}',
    'nodepool.yaml:4:5: diskimages[0].validate has neither hook nor boot; name one, or remove it',
  ],
  [
    'an open quote',
    `      hook: check 'this`,
    'nodepool.yaml:5:7: diskimages[0].validate.hook has an unmatched quote or backslash; close or remove it',
  ],
  [
    'a hook without a command',
    `      hook: []`,
    'nodepool.yaml:5:7: diskimages[0].validate.hook names no command; name one, or remove it',
  ],
  [
    'an invalid regular expression',
    `      boot:\n        expect: 'login ('`,
    'nodepool.yaml:6:9: diskimages[0].validate.boot.expect is not a regular expression: Invalid regular expression: /login (/: Unterminated group; correct it; put a backslash before a character to match it literally',
  ],
  [
    'a boot without an expected text',
    `      boot: {timeout: 5}`,
    'nodepool.yaml:5:7: diskimages[0].validate.boot lacks the key "expect"; add "expect: …"',
  ],
  [
    'an invalid time limit',
    `      boot: {expect: a, timeout: 0}`,
    'nodepool.yaml:5:25: diskimages[0].validate.boot.timeout is 0; use a number > 0',
  ],
];

for (const [what, validate, diagnostic] of DIAGNOSTICS) {
  it(`the validation of a disk image is rejected for ${what}`, async (t) => {
    await assert.rejects(load(t, validate), (error) => {
      assert.ok(error instanceof ConfigurationError, String(error));
      assert.deepEqual(
        error.diagnostics.map((found) => formatDiagnostic('nodepool.yaml', found)),
        [diagnostic],
      );
      return true;
    });
  });
}
