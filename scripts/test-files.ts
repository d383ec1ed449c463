import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Globs of the test files, relative to the top of the project. */
const TEST_FILES = ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'];

/** First line of a test file that `npm test` omits. */
const ONLY_IN_TEST_ALL = /^\/\/ Only in test:all: \S/;

/** Sets of tests: those of `npm test`, the rest, or all that `npm run test:all` runs. */
export type TestSet = 'test' | 'rest' | 'all';

/** Returns the paths of a set's test files relative to `root`, sorted. */
export async function findTestFiles(root: string, set: TestSet): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob(TEST_FILES, { cwd: root })) {
    const isRest = ONLY_IN_TEST_ALL.test(await readFile(join(root, file), 'utf8'));
    if (set === 'all' || isRest === (set === 'rest')) files.push(file);
  }
  return files.toSorted();
}

/**
 * Returns the tests of changed files: changed tests, and the tests that mirror changed sources, which are
 * `test/foo.test.ts`, `test/foo-*.test.ts` and `test/foo/*.test.ts` for `src/foo.ts`.
 *
 * @param changed - paths relative to the top of the project, as git prints them
 */
export function testsOf(changed: readonly string[], testFiles: readonly string[]): string[] {
  const mirrors = changed.flatMap((path) => mirrorOf(path) ?? []);
  return testFiles.filter(
    (file) =>
      changed.includes(file) ||
      mirrors.some((mirror) => file.startsWith(mirror) && '.-/'.includes(file.charAt(mirror.length))),
  );
}

/** Returns the common prefix of the paths of a source's tests. */
function mirrorOf(path: string): string | undefined {
  if (!path.endsWith('.ts')) return undefined;
  const name = path.slice(0, -'.ts'.length);
  if (name.startsWith('scripts/')) return `test/${name}`;
  const [root, directory, kind, ...rest] = name.split('/');
  return root === 'packages' && kind === 'src' ? [root, directory, 'test', ...rest].join('/') : undefined;
}
