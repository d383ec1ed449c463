import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { describe, it, test } from 'node:test';
import { loadConfiguration } from 'nodepool-builder';
import { builderCommand, CUSTOM_BUILDER, startBuilder } from '../fixtures/builder-process.ts';
import { ExampleProject } from '../fixtures/example-project.ts';
import { createFakeDib } from '../fixtures/fake-dib.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { nodepoolBuilderShell } from '../fixtures/nodepool-builder-shell.ts';
import { temporaryDirectory } from '../fixtures/temporary-directory.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

describe('the custom builder', () => {
  it('the custom builder is a program of at most 20 lines', async () => {
    const lines = (await readFile(CUSTOM_BUILDER, 'utf8')).trimEnd().split('\n');
    assert.ok(lines.length <= 20, `${lines.length} lines`);
  });

  it('the custom builder makes an image of a directory and uploads it as qcow2', async (t) => {
    const server = await startGearmand();
    undoAfter(t, () => server.stop());
    const directory = await mkdtemp(join(tmpdir(), 'custom-builder-'));
    undoAfter(t, () => rm(directory, { recursive: true }));
    const config = join(directory, 'nodepool.yaml');
    await cp(join(EXAMPLES, 'custom-builder/nodepool.yaml'), config);
    await writeFile(config, `\ngearman-servers: [{host: 127.0.0.1, port: ${server.port}}]\n`, { flag: 'a' });
    await Promise.all(['images', 'pool'].map((name) => mkdir(join(directory, name))));
    const builder = await startBuilder(config);
    undoAfter(t, () => builder.end('SIGTERM'));

    const run = (...args: readonly string[]): string =>
      execFileSync(...builderCommand(...args, '-c', config), {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    const imageId = run('image-build', 'docs');
    const externalId = run('image-upload', imageId, '--provider', 'local');
    assert.match(
      execFileSync('qemu-img', ['info', join(directory, 'pool', externalId)], { encoding: 'utf8' }),
      /file format: qcow2/,
    );
    const raw = join(directory, 'images', `${imageId}.raw`);
    const content = execFileSync('debugfs', ['-R', 'cat /copyright', raw], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    assert.ok(content.equals(await readFile('/usr/share/doc/e2fsprogs/copyright')));
  });
});

test('the example scanned-dib scans each image after disk-image-create, and a failed scan rejects it', async (t) => {
  const { directory } = await ExampleProject.create(t);
  await cp(join(EXAMPLES, 'scanned-dib'), directory, { recursive: true });
  const { directory: tools } = await createFakeDib(await temporaryDirectory(t));
  const scan = (end: string): Promise<void> =>
    writeFile(join(tools, 'scan-image'), `#!/bin/sh\nqemu-img info "$1"\n${end}\n`, { mode: 0o755 });
  const shell = await nodepoolBuilderShell(directory);
  const build = async (): Promise<readonly string[]> => {
    const command = 'nodepool-builder build debian -c nodepool.yaml --output built';
    return (await shell(`PATH='${tools}':$PATH; ${command}`)).trim().split('\n');
  };

  await scan('exit 0');
  const files = await build();
  assert.deepEqual(
    files.map((file) => extname(file)),
    ['.raw', '.qcow2'],
  );
  const log = await readFile((files[0] ?? '').replace(/\.raw$/, '.log'), 'utf8');
  assert.match(log, /^file format: raw\n(?:.*\n)*file format: qcow2$/m);

  await scan('echo it has no kernel; exit 1');
  await assert.rejects(build(), /"scan-image" ended with exit code 1, saying: .*it has no kernel/);
  const built = await readdir(join(directory, 'built'));
  assert.equal(built.filter((name) => name.endsWith('.raw')).length, 1);
});

for (const example of ['nodepool.yaml', 'all-in-one/nodepool.yaml']) {
  it(`the example ${example} is valid, without a warning`, async () => {
    const { warnings } = await loadConfiguration(join(EXAMPLES, example));
    assert.deepEqual(warnings, []);
  });
}

it('the units for the builder and for all in one differ only in their command and their name', () => {
  const [builder = '', allInOne = ''] = ['builder', 'all-in-one'].map((name) =>
    readFileSync(join(EXAMPLES, 'systemd', `nodepool-${name}.service`), 'utf8'),
  );
  const changed = builder
    .replace('Nodepool image builder', 'Nodepool image builder, manager and job server')
    .replace('nodepool-builder -d', 'nodepool-builder -d --all-in-one');
  assert.equal(changed, allInOne);
});
