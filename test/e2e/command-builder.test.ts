// Only in test:all: it builds a Debian image with mmdebstrap.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { startDebianProxy } from '../../scripts/debian-proxy.ts';
import { builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/command-builder');
const UPLOAD = ['--provider', 'local', '--image-name', 'docs'];
const run = promisify(execFile);

/** Copies the example. Returns the path of its configuration. */
async function copyExample(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'command-builder-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  await cp(EXAMPLE, directory, { recursive: true });
  for (const name of ['images', 'pool', 'out']) await mkdir(join(directory, name));
  return join(directory, 'nodepool.yaml');
}

async function nodepoolBuilder(config: string, ...args: readonly string[]): Promise<string> {
  await using proxy = await startDebianProxy();
  const env = { ...process.env, http_proxy: proxy.url };
  const { stdout } = await run(...builderCommand(...args, '-c', config), { env });
  return stdout.trim();
}

async function readImage(image: string, path: string): Promise<Buffer> {
  const { stdout } = await run('debugfs', ['-R', `cat ${path}`, image], { encoding: 'buffer' });
  return stdout;
}

test('a command builds a Debian image with mmdebstrap and mke2fs', async (t) => {
  const config = await copyExample(t);
  const output = join(config, '../out');
  const image = await nodepoolBuilder(config, 'build', 'debian', '--format', 'raw', '--output', output);
  const osRelease = String(await readImage(image, '/usr/lib/os-release'));
  assert.match(osRelease, /^ID=debian$/m);
  assert.match(osRelease, /^VERSION_CODENAME=trixie$/m);
});

test('a command that wraps a shell script is run by Gearman jobs, and its image is uploaded', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const config = await copyExample(t);
  await writeFile(config, `\ngearman-servers: [{host: 127.0.0.1, port: ${server.port}}]\n`, { flag: 'a' });
  const builder = await startBuilder(config);
  undoAfter(t, () => builder.end('SIGTERM'));

  const imageId = await nodepoolBuilder(config, 'image-build', 'docs');
  const externalId = await nodepoolBuilder(config, 'image-upload', imageId, ...UPLOAD);
  const { stdout } = await run('qemu-img', ['info', join(config, '../pool', externalId)]);
  assert.match(stdout, /file format: qcow2/);
  const copyright = await readImage(join(config, `../images/${imageId}.raw`), '/copyright');
  assert.ok(copyright.equals(await readFile('/usr/share/doc/e2fsprogs/copyright')));
});
