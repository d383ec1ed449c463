import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');

/** Runs the linter with only the rule about regular expressions. */
function lint(paths: readonly string[]): { readonly status: number | null; readonly stdout: string } {
  const linter = join(ROOT, 'node_modules/oxlint/bin/oxlint');
  const args = [linter, '-c', join(ROOT, 'scripts/lint/oxlint.json'), ...paths];
  return spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 });
}

async function fileOf(t: TestContext, source: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'super-linear-regexp-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'source.js');
  await writeFile(file, source);
  return file;
}

test('no regular expression of any package takes more than linear time', async () => {
  const packages = await readdir(join(ROOT, 'packages'));
  const { status, stdout } = lint(packages.map((name) => join('packages', name, 'src')));
  assert.match(stdout, /on \d{3,} files with 1 rules/);
  assert.equal(status, 0, stdout);
});

test('a regular expression that takes super-linear time is found', async (t) => {
  for (const expression of [
    String.raw`/^ERR (\S+) ?([^\t]*)$/`,
    String.raw`/^(?:\s*\n)*\[/`,
    String.raw`/\/+$/`,
    "new RegExp('^(a*)*b$')",
  ]) {
    const { status, stdout } = lint([await fileOf(t, `export const expression = ${expression};\n`)]);
    assert.match(stdout, /no-super-linear-time/, expression);
    assert.equal(status, 1);
  }
});
