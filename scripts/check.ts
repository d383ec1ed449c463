/**
 * Checks one's own change in seconds: `npm run check`. Types, lint and format of the whole project, and the
 * tests of the files that differ from HEAD, untracked ones included.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findTestFiles, testsOf } from './test-files.ts';

const root = join(import.meta.dirname, '..');
const run = promisify(execFile);

const tests = testsOf(await changedFiles(), await findTestFiles(root));
const checks: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['types', 'tsc', '-b'],
  ['lint', 'oxlint', '--type-aware', '--deny-warnings'],
  ['format', 'biome', 'check', '--diagnostic-level=warn'],
  ...(tests.length > 0
    ? [['tests', process.execPath, join(import.meta.dirname, 'test.ts'), ...tests] as const]
    : []),
];

const passed = await Promise.all(checks.map(([name, command, ...args]) => check(name, command, args)));
if (tests.length === 0) console.log('- tests: no changed file has any');
process.exitCode = passed.every(Boolean) ? 0 : 1;

/** Runs one check and prints its outcome, and its output if it failed. */
async function check(name: string, command: string, args: readonly string[]): Promise<boolean> {
  const start = performance.now();
  const fault = await run(command, args, { cwd: root, maxBuffer: 2 ** 26 }).then(
    () => undefined,
    (error: { stdout?: string; stderr?: string; message: string }) =>
      `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message,
  );
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${fault === undefined ? '✓' : '✗'} ${name} (${seconds} s)`);
  if (fault !== undefined) console.log(fault.replaceAll(/^/gm, '    '));
  return fault === undefined;
}

async function changedFiles(): Promise<string[]> {
  const lists = await Promise.all([
    run('git', ['diff', '--name-only', '-z', 'HEAD'], { cwd: root }),
    run('git', ['ls-files', '--others', '--exclude-standard', '-z'], { cwd: root }),
  ]);
  return lists.flatMap(({ stdout }) => stdout.split('\0')).filter(Boolean);
}
