// Not a unit test: it runs the whole command, which changes the umask and prints.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { readPage } from '../../../../test/docs/markdown.ts';
import { runInProcess } from '../../../../test/fixtures/command-in-process.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { createAjv } from '../../../image-builder/src/json-reader.ts';
import { outputSchemas } from '../../src/commands/output-schemas.ts';

const { 'validate.schema.json': SCHEMA = {} } = outputSchemas();

const GOOD = 'diskimages: [{name: a, elements: [vm]}]\n';

/** Paths of four files: valid, with a warning, with a job error, and with errors. */
async function files(
  t: TestContext,
): Promise<Record<'good' | 'odd' | 'failing' | 'bad' | 'secrets', string>> {
  const directory = temporaryDirectory(t);
  const texts = {
    good: 'images-dir: .\n',
    odd: 'images-dir: .\nimages-dri: x\n',
    failing: `images-dir: .\n${GOOD.replace('[vm]', `"vm 'base"`)}`,
    bad: 'images-dir: 5\n',
    secrets: 'diskimages: 7\n',
  };
  const paths = Object.keys(texts).map((name) => [name, join(directory, `${name}.yaml`)]);
  const known = Object.fromEntries(paths) as Record<keyof typeof texts, string>;
  for (const [name, path] of paths) await writeFile(path ?? '', texts[name as keyof typeof texts]);
  return known;
}

describe('validate', () => {
  const isValid = createAjv({ allowUnionTypes: true, strictTypes: false }).compile(SCHEMA);
  let schema: unknown;
  before(async () => {
    schema = JSON.parse(await readPage('packages/nodepool-builder/validate.schema.json'));
  });

  it('validate checks several files, and fails if one of them is invalid', async (t) => {
    const { good, odd, bad } = await files(t);
    const { code, stdout, stderr } = await runInProcess('validate', good, bad, odd);
    assert.equal(code, 1);
    assert.equal(
      stdout,
      `${good} is valid: 0 disk images, 0 providers\n${odd} is valid: 0 disk images, 0 providers\n`,
    );
    const [error, warning, ...others] = stderr.trimEnd().split('\n');
    assert.deepEqual(others, []);
    assert.ok(error?.startsWith(`${bad}:1:1: images-dir must be a string`), error);
    assert.ok(warning?.startsWith(`${odd}:2:1: warning: `), warning);
  });

  it('validate --strict fails because of a warning', async (t) => {
    const { good, odd } = await files(t);
    assert.equal((await runInProcess('validate', odd)).code, 0);
    assert.equal((await runInProcess('validate', '--strict', odd)).code, 1);
    assert.equal((await runInProcess('validate', '--strict', good)).code, 0);
  });

  it('validate --json prints all files as its JSON Schema says', async (t) => {
    const { good, odd, failing, bad } = await files(t);
    const { code, stdout, stderr } = await runInProcess('validate', '--json', good, odd, failing, bad);
    assert.deepEqual([code, stderr], [1, '']);
    const results = JSON.parse(stdout);
    assert.ok(isValid(results), JSON.stringify(isValid.errors));
    assert.partialDeepStrictEqual(results, [
      { file: good, valid: true, diskimages: 0, providers: 0, diagnostics: [] },
      { file: odd, valid: true, diagnostics: [{ file: odd, line: 2, column: 1, severity: 'warning' }] },
      { file: failing, valid: false, diskimages: 1, diagnostics: [{ severity: 'job-error' }] },
      { file: bad, valid: false, diskimages: null, diagnostics: [{ line: 1, severity: 'error' }] },
    ]);
  });

  it('the JSON Schema of validate’s output is up to date (npm run docs)', () => {
    assert.deepEqual(schema, JSON.parse(JSON.stringify(SCHEMA)));
  });

  it('validate -s also checks the file with secret env-vars', async (t) => {
    const { good, secrets } = await files(t);
    const { code, stderr } = await runInProcess('validate', good, '-s', secrets);
    assert.equal(code, 1);
    assert.ok(stderr.startsWith(`${secrets}:1:1: diskimages must be a list`), stderr);
  });

  it('the command validate rejects files given both with and without -c', async (t) => {
    const { good } = await files(t);
    assert.equal((await runInProcess('validate', good, '-c', good)).code, 2);
  });

  it('another command’s error in the configuration also begins with file, line and column', async (t) => {
    const { bad } = await files(t);
    const { code, stderr } = await runInProcess('plan', '-c', bad);
    assert.equal(code, 1);
    assert.ok(stderr.startsWith(`${bad}:1:1: images-dir must be a string`), stderr);
  });
});
