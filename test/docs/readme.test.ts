import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { loadConfiguration } from 'nodepool-builder';
import { builderCommand } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const readme = await readPage('README.md');
const [install, set, session] = codeBlocks(readme, 'sh');

test('README.md names existing scripts', async () => {
  const { scripts } = JSON.parse(await readPage('package.json')) as { scripts: Record<string, string> };
  const commands = [...(set ?? '').matchAll(/^npm (?:run )?(\w+)/gm)].map(([, name = '']) => name);
  assert.deepEqual(commands, ['quickstart', 'test']);
  for (const name of commands) assert.ok(scripts[name]?.startsWith(`sh scripts/setup.sh ${name} && `), name);
});

test('README.md installs an existing unit and configuration, whose commands npm run rehearse-release runs', async () => {
  const [, unit = ''] = /^systemctl enable --now (\S+)/m.exec(install ?? '') ?? [];
  const [, example = ''] = /^cp (\S+\/nodepool\.yaml) \/etc\/nodepool\b/m.exec(install ?? '') ?? [];
  assert.match(await readPage(`examples/systemd/${unit}.service`), / -c \/etc\/nodepool\/nodepool\.yaml$/m);
  const { configuration } = await loadConfiguration(join(ROOT, 'examples', example));
  assert.match(install ?? '', new RegExp(`^mkdir .*${configuration['images-dir']}\\b`, 'm'));
  assert.equal((install ?? '').trimEnd().split('\n').length, 13);
});

test('the commands in README.md work', async (t) => {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const directory = await mkdtemp(join(tmpdir(), 'readme-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  await Promise.all(['bin', 'images', 'pool'].map((name) => mkdir(join(directory, name))));
  // "debian" is a small disk image here; npm run quickstart builds a real one.
  await writeFile(
    join(directory, 'nodepool.yaml'),
    `images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${server.port}}]
diskimages: [{name: debian, builder: directory-tree, options: {tree: ${import.meta.dirname}}}]
providers: [{name: local, type: directory, directory: pool, images: [{name: debian, diskimage: debian}]}]
`,
  );
  const command = builderCommand()
    .flat()
    .map((word) => `'${word}'`)
    .join(' ');
  await writeFile(join(directory, 'bin/nodepool-builder'), `#!/bin/sh\nexec ${command} "$@"\n`, {
    mode: 0o755,
  });
  const PATH = [join(directory, 'bin'), process.env.PATH].join(delimiter);
  const { stdout } = await promisify(execFile)('sh', ['-eu', '-c', session ?? ''], {
    cwd: directory,
    env: { ...process.env, PATH },
  });
  assert.match(stdout, /nodepool\.yaml is valid: 1 disk image, 1 provider/);
  assert.match(stdout, /debian-\d{14}-[0-9a-z]{4}/);
  await waitUntil('the builder to end', () => !existsSync(join(directory, 'builder.pid')));
});

test('the configuration in README.md loads without a warning', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'readme-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, codeBlocks(readme, 'yaml')[0] ?? '');
  assert.deepEqual((await loadConfiguration(file)).warnings, []);
});

test('README.md shows the program in examples/custom-builder unchanged', async () => {
  const example = await readFile(join(ROOT, 'examples/custom-builder/custom-builder.ts'), 'utf8');
  assert.deepEqual(codeBlocks(readme, 'ts'), [example]);
});
