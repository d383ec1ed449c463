import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { findTestFiles } from '../../scripts/test-files.ts';
import { unitTestsAmong } from '../../scripts/unit-tests.ts';

const root = join(import.meta.dirname, '../..');

test('a large part of the tests are unit tests, in every package', async () => {
  const testFiles = await findTestFiles(root, 'test');
  const unitTests = await unitTestsAmong(testFiles, root);
  assert.ok(unitTests.length > testFiles.length / 3, `${unitTests.length} of ${testFiles.length}`);
  assert.ok(unitTests.includes(relative(root, import.meta.filename)));
  assert.deepEqual(packagesOf(unitTests), packagesOf(testFiles));
});

function packagesOf(paths: readonly string[]): Set<string> {
  return new Set(paths.flatMap((path) => /^packages\/[^/]+/.exec(path) ?? []));
}

const files = {
  'test/plan.test.ts': "import { plan } from '../src/plan.ts';\nimport type { Child } from './program.ts';\n",
  'test/program.test.ts': "import { program } from './program.ts';\n",
  'test/long-way.test.ts': "import {\n  a,\n  b,\n} from './helper.ts';\n",
  'test/execa.test.ts': "import { execa } from 'execa';\n",
  'packages/core/test/server.test.ts': "import { server } from '../../../test/doubles/server.ts';\n",
  'test/own-program.test.ts': '// Not a unit test: it starts flock.\n',
  'test/long.test.ts': '// Only in test:all: it takes a minute.\n',
  'test/helper.ts': "export * from './program.ts';\n",
  'test/program.ts': "import { spawn } from 'node:child_process';\n",
  'src/plan.ts': "import { execFile } from 'node:child_process';\n",
  'test/doubles/server.ts': '// Not a unit test: it starts a server.\n',
};

test('a test file that starts programs, itself or in a helper, is not a unit test', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'unit-tests-'));
  t.after(() => rm(directory, { recursive: true }));
  for (const [path, source] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), source);
  }
  const testFiles = Object.keys(files).filter((path) => path.endsWith('.test.ts'));
  assert.deepEqual(await unitTestsAmong(testFiles, directory), ['test/plan.test.ts']);
});
