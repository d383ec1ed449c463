import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const page = await readPage('docs/security.md');
const [certificates = '', server = '', ...others] = codeBlocks(page, 'sh');
const [accessList = '', configuration = ''] = codeBlocks(page, 'yaml');
const run = promisify(execFile);

/** Starts the job server with the page's command, on a free port. Returns the port. */
async function startServer(t: TestContext, cwd: string): Promise<string> {
  const { PATH = '' } = process.env;
  const command = server.replace('--listen 0.0.0.0', '--listen 127.0.0.1 --port 0');
  const child = spawn('sh', ['-euc', `exec ${command}`], {
    cwd,
    env: { ...process.env, PATH: `${cwd}:${PATH}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  undoAfter(t, async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  return /:(\d+)$/.exec(line)?.[1] ?? assert.fail(line);
}

test('the certificates and the access list in docs/security.md work', async (t) => {
  assert.deepEqual(others, []);
  const directory = await mkdtemp(join(tmpdir(), 'docs-security-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const program = builderCommand().flat().join(' ');
  await writeFile(join(directory, 'nodepool-builder'), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
  await run('sh', ['-euc', certificates], { cwd: directory });
  await writeFile(join(directory, 'access.yaml'), accessList);
  await mkdir(join(directory, 'images'));
  const port = await startServer(t, directory);

  const configure = async (name: string): Promise<string> => {
    const file = join(directory, `${name}.yaml`);
    const text = configuration
      .replace('/opt/nodepool/images', 'images')
      .replace(
        'host: gearman.example.org',
        `host: 127.0.0.1\n    port: ${port}\n    ssl-server-name: gearman.example.org`,
      )
      .replaceAll('builder.example.org', name);
    const image = `{name: docs, builder: directory-tree, options: {tree: ${join(ROOT, 'test/docs')}}}`;
    await writeFile(file, `${text}diskimages: [${image}]\n`);
    return file;
  };
  const builder = await startBuilder(await configure('builder.example.org'));
  undoAfter(t, () => builder.end('SIGTERM'));

  const build = async (name: string): Promise<string> => {
    const [command, args] = builderCommand('image-build', 'docs', '-c', await configure(name));
    return (await run(command, args)).stdout.trim();
  };
  const imageId = await build('operator');
  await access(join(directory, `images/${imageId}.raw`));
  await assert.rejects(build('builder.example.org'), /Not allowed to submit jobs of this function/);
});
