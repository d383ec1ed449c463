/**
 * Runs the tests on the sources: `npm test -- [PART-OF-A-PATH...]`.
 *
 * Without an option, it runs all files except those whose first line is `// Only in test:all: REASON`. Unit tests run
 * in a separate process, in parallel with the others.
 *
 * --all runs every test (`npm run test:all`), and --rest those that `npm test` omits.
 * --unit runs only the unit tests (`npm run test:unit`).
 * --node 22 runs the tests on the newest Node of that line, fetched with npm, instead of this one.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs, promisify } from 'node:util';
import { HOST_SOCKET, startHost } from '../test/fixtures/openstack/openstack-host.ts';
import { findTestFiles } from './test-files.ts';
import { unitTestsAmong } from './unit-tests.ts';

const { values: options, positionals: parts } = parseArgs({
  options: {
    all: { type: 'boolean' },
    rest: { type: 'boolean' },
    unit: { type: 'boolean' },
    node: { type: 'string' },
  },
  allowPositionals: true,
});
const root = join(import.meta.dirname, '..');

const set = options.rest ? 'rest' : options.all ? 'all' : 'test';
const testFiles = await findTestFiles(root, set);
const isUnitTest = new Set(await unitTestsAmong(testFiles, root));
const candidates = options.unit ? [...isUnitTest] : testFiles;
// Each part must select a test, so that the name of a moved test does not silently select nothing.
const unmatched = parts.filter((part) => !candidates.some((file) => file.includes(part)));
if (unmatched.length > 0) {
  const hint = set === 'test' ? '; "npm run test:all" has more' : '';
  console.error(`No test file's path contains "${unmatched.join('" or "')}"${hint}.`);
  process.exit(1);
}
const files = candidates.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
const unitTests = files.filter((file) => isUnitTest.has(file));
const otherTests = files.filter((file) => !isUnitTest.has(file));

const node = options.node === undefined ? process.execPath : await nodeOfLine(options.node);
const openStackHost = otherTests.length === 0 ? undefined : await startHost();
// Tests neither read the user's settings nor write to the user's home. Only npm uses the site's proxy.
const home = await mkdtemp(join(tmpdir(), 'nodepool-builder-test-home-'));
const settings = Object.keys(process.env).filter((name) =>
  /^(?:OS_|XDG_|(?:REQUESTS|CURL)_CA_BUNDLE$)/.test(name),
);
const direct = [process.env.no_proxy, '127.0.0.1', 'localhost', '::1'].filter(Boolean).join(',');
const isProxied = Object.keys(process.env).some((name) => /^(?:https?|all)_proxy$/i.test(name));
const environment = {
  ...process.env,
  ...Object.fromEntries(settings.map((name) => [name, undefined])),
  ...(isProxied && { no_proxy: direct, NO_PROXY: direct }),
  HOME: home,
  // sudo, which disk-image-create uses, replaces HOME but keeps this variable.
  XDG_CACHE_HOME: join(home, '.cache'),
  PATH: pathFor(node),
  // Tests start a hundred daemons, which start in half the time with Node's compile cache.
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/node-compile-cache'),
  ...(openStackHost && { [HOST_SOCKET]: openStackHost.socket }),
};
const statuses = await Promise.all([
  // Unit test output follows at their end, unless they run alone. Node 22 also knows the first option's name.
  runTests(unitTests, parts.length === 0 ? 'dot' : 'spec', otherTests.length === 0 ? 'inherit' : 'pipe', [
    '--experimental-test-isolation=none',
    `--import=${join(root, 'scripts/no-programs.ts')}`,
    // Timeout of a test. Only a hang reaches it; the other output is hidden until then.
    '--test-timeout=120000',
  ]),
  // One more than cores, because tests wait for other programs part of the time.
  runTests(otherTests, 'spec', 'inherit', [
    `--test-concurrency=${availableParallelism() + 1}`,
    // Timeout of a test, and of a whole file. Only a hang reaches it.
    '--test-timeout=1800000',
  ]),
]);
await openStackHost?.close();
await rm(home, { recursive: true, force: true });
process.exitCode = Math.max(...statuses);

/** Runs test files and resolves with the exit status. */
async function runTests(
  paths: readonly string[],
  reporter: 'dot' | 'spec',
  stdout: 'inherit' | 'pipe',
  nodeOptions: readonly string[],
): Promise<number> {
  if (paths.length === 0) return 0;
  const child = spawn(
    node,
    [
      '--conditions=@nodepool-builder/source',
      '--disable-warning=ExperimentalWarning',
      '--test',
      `--import=${join(root, 'test/fixtures/end-with-tests.ts')}`,
      ...nodeOptions,
      `--test-reporter=${reporter}`,
      '--test-reporter-destination=stdout',
      `--test-reporter=${join(import.meta.dirname, 'refuse-skipped.ts')}`,
      '--test-reporter-destination=stderr',
      ...paths,
    ],
    { cwd: root, stdio: ['inherit', stdout, 'inherit'], env: environment },
  );
  const [output, [status]] = await Promise.all([
    child.stdout === null ? '' : text(child.stdout),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  process.stdout.write(output);
  return status ?? 1;
}

/** Returns the path of a `node` of a release line, from npm's cache or the registry. */
async function nodeOfLine(line: string): Promise<string> {
  const { stdout } = await promisify(execFile)('npm', [
    'exec',
    '--yes',
    `--package=node@${line}`,
    '--',
    'which',
    'node',
  ]);
  const path = stdout.trim();
  const { stdout: version } = await promisify(execFile)(path, ['--version']);
  if (!version.startsWith(`v${line}`)) throw new Error(`npm gave Node ${version.trim()} for line ${line}`);
  console.log(`Tests on Node ${version.trim()}`);
  return path;
}

/** Returns the PATH of the tests: this Node first, and last the directories that only root has in PATH on Debian. */
function pathFor(nodePath: string): string {
  return [dirname(nodePath), process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);
}
