import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const reporter = join(import.meta.dirname, '../../scripts/refuse-skipped.ts');

const cases = [
  ['a test that runs', "test('one', () => {})", 0, ''],
  ['a skipped test', "test.skip('one', () => {})", 1, /"one" in .* no test may be skipped/],
  ['a test marked as todo', "test.todo('one')", 1, /"one" in .* no test may be skipped/],
  ['a file without a test', 'void test', 1, /contains no test/],
] as const;

for (const [what, source, status, output] of cases) {
  test(`${what} ${status === 0 ? 'is accepted by the reporter' : 'makes the run fail'}`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'refuse-skipped-'));
    t.after(() => rm(directory, { recursive: true }));
    const file = join(directory, 'case.test.mjs');
    await writeFile(file, `import { test } from 'node:test';\n${source};\n`);

    // NODE_TEST_CONTEXT would make the inner run part of this one.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const run = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--test', `--test-reporter=${reporter}`, file],
      { env, encoding: 'utf8' },
    );

    assert.equal(run.status, status, run.stderr);
    if (output === '') assert.equal(run.stdout, '');
    else assert.match(run.stdout, output);
  });
}
