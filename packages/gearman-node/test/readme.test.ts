import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { DEFAULT_PORT } from '../src/connection/server-address.ts';
import { VERSION } from '../src/server/admin-replies.ts';
import { JobServerSite } from './fixtures/job-server-site.ts';

const packageDirectory = join(import.meta.dirname, '..');
const readme = await readFile(join(packageDirectory, 'README.md'), 'utf8');

/** Returns the code under a heading of the README. */
function code(heading: string): string {
  const [, section = ''] = readme.split(`\n## ${heading}\n`);
  const [, block] = /```ts\n(.*?)```/s.exec(section) ?? [];
  assert.ok(block, `no code below "${heading}"`);
  return block;
}

/** Runs code as a module of this package, with the test's job server instead of the default one. */
function run(t: TestContext, source: string, port: number): ChildProcess & { stdout: NodeJS.ReadableStream } {
  const options = ['--conditions=@nodepool-builder/source', '--disable-warning=ExperimentalWarning'];
  const module = source.replaceAll(String(DEFAULT_PORT), String(port));
  const child = spawn(process.execPath, [...options, '--input-type=module-typescript', '--eval', module], {
    cwd: packageDirectory,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill());
  return child;
}

/** Runs code to its end. Returns its output. */
async function output(t: TestContext, source: string, port: number): Promise<string> {
  const child = run(t, source, port);
  const [printed, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  assert.equal(status, 0);
  return printed;
}

test('the README’s worker, client and admin client do what the README says', async (t) => {
  const { port } = await JobServerSite.start(t);
  run(t, code('A worker'), port);
  const lines = (await output(t, code('A client'), port)).split('\n');
  assert.deepEqual(lines.slice(0, 2), ['1/2', 'hello']);
  assert.match(lines[2] ?? '', /^job H:\S+ of reverse failed;/);
  assert.match(lines.slice(3).join(' '), /known: (true|false)/);
  const status = await output(t, code('Admin'), port);
  assert.match(status, new RegExp(`^${VERSION}\nreverse: \\d jobs, \\d of them running, 1 workers\n$`));
});

test('the README’s first program prints what the README says', async (t) => {
  assert.equal(await output(t, code('Try it'), 0), 'Hello, world!\n');
});

test('the tests of the README run all of its code', () => {
  assert.equal(readme.match(/^```ts$/gm)?.length, 4);
});
