/**
 * Checks a change in less than a minute: `npm run check`. Runs types, lint, format and unit tests of the whole project,
 * and the other tests in `npm test` that belong to files which differ from HEAD, including untracked ones.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findTestFiles, testsOf } from './test-files.ts';
import { unitTestsAmong } from './unit-tests.ts';

const root = join(import.meta.dirname, '..');
const run = promisify(execFile);

const testProgram = join(import.meta.dirname, 'test.ts');
const ofChange = testsOf(await changedFiles(), await findTestFiles(root, 'test'));
const unitTests = new Set(await unitTestsAmong(ofChange, root));
const otherTests = ofChange.filter((file) => !unitTests.has(file));
const checks: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['types', 'tsc', '-b'],
  ['lint', 'oxlint', '--type-aware', '--deny-warnings'],
  ['format', 'biome', 'check', '--diagnostic-level=warn'],
  ['unit tests', process.execPath, testProgram, '--unit'],
  ...(otherTests.length > 0
    ? [['other tests of the change', process.execPath, testProgram, ...otherTests] as const]
    : []),
];

const passed = await Promise.all(checks.map(([name, command, ...args]) => check(name, command, args)));
process.exitCode = passed.every(Boolean) ? 0 : 1;

/** Runs one check and prints its outcome, and its output if it failed. */
async function check(name: string, command: string, args: readonly string[]): Promise<boolean> {
  const start = performance.now();
  const failure = await run(command, args, { cwd: root, maxBuffer: 2 ** 26 }).then(
    () => undefined,
    (error: { stdout?: string; stderr?: string; message: string }) =>
      `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message,
  );
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${failure === undefined ? '✓' : '✗'} ${name} (${seconds} s)`);
  // Without the dots of passed tests.
  if (failure !== undefined) console.log(failure.replaceAll(/^[.X]+\n/gm, '').replaceAll(/^/gm, '    '));
  return failure === undefined;
}

async function changedFiles(): Promise<string[]> {
  const lists = await Promise.all([
    run('git', ['diff', '--name-only', '-z', 'HEAD'], { cwd: root }),
    run('git', ['ls-files', '--others', '--exclude-standard', '-z'], { cwd: root }),
  ]);
  return lists.flatMap(({ stdout }) => stdout.split('\0')).filter(Boolean);
}
