import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type BuilderProcess, builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { createFakeDib, type FakeDib } from '../fixtures/fake-dib.ts';
import { startNginx } from '../fixtures/nginx.ts';
import { createSite, DOCS, type Site } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { ZuulDouble } from '../fixtures/zuul/zuul-double.ts';

/** A port without a job server, which the command does not need. */
const NO_SERVER = 1;

interface BuildSite extends Site {
  /** Directory of the job. */
  readonly output: string;
}

async function createBuildSite(t: TestContext, diskimages: string = DOCS): Promise<BuildSite> {
  const site = await createSite(NO_SERVER, diskimages);
  undoAfter(t, () => site.remove());
  return { ...site, output: join(site.directory, 'output') };
}

/** Runs a build in its own process, with the fake disk-image-create first in PATH. */
function startBuild(t: TestContext, dib: FakeDib | undefined, ...args: readonly string[]): BuilderProcess {
  const [command, all] = builderCommand('build', ...args);
  const path = dib === undefined ? [] : [`PATH=${dib.directory}:${process.env.PATH}`];
  const build = spawnDaemon(['env', [...path, command, ...all]]);
  undoAfter(t, () => (build.child.exitCode === null ? build.end('SIGKILL') : undefined));
  return build;
}

function hexDigest(algorithm: string, bytes: Buffer): string {
  return createHash(algorithm).update(bytes).digest('hex');
}

test('the command build limits its log to 64 MiB, and obeys virtual-size-limit of the configuration file', async (t) => {
  const { config, directory, output } = await createBuildSite(t);
  const entry = { name: 'docs', builder: 'command', formats: ['qcow2', 'raw'] };
  const print = 'head -c 70000000 /dev/zero | tr "\\0" x | fold -w 8000';
  const script = `${print}; qemu-img create -q -f qcow2 "$1" 2G`;
  const diskimages = [{ ...entry, command: ['sh', '-c', script, 'sh', '{output.qcow2}'] }];
  await writeFile(config, JSON.stringify({ 'images-dir': directory, 'virtual-size-limit': 1, diskimages }));
  const { code, stderr } = await runCommand(
    'build',
    'docs',
    '-c',
    config,
    '--output',
    output,
    '--image-id',
    '1',
  );
  assert.equal(code, 1);
  assert.match(stderr, /has 2 GiB, more than 1; make it smaller, or raise virtual-size-limit/);
  const { size } = await stat(join(output, '1.log'));
  assert.ok(size >= 32 * 2 ** 20 && size <= 64 * 2 ** 20, String(size));
});

test('the command build makes and converts a custom program’s files, whose checksums upload accepts', async (t) => {
  const { config, output, pool, images } = await createBuildSite(t);
  const json = join(output, 'build.json');
  const formats = ['--format', 'qcow2', '--format', 'raw'];
  const build = ['build', 'docs', '-c', config, '--output', output, '--image-id', 'docs-1', ...formats];
  await mkdir(output);
  const { code, stdout, stderr } = await runCommand(...build, '--json-file', json);
  const [qcow2, raw] = ['qcow2', 'raw'].map((format) => join(output, `docs-1.${format}`)) as [string, string];
  assert.deepEqual([code, stdout], [0, `${qcow2}\n${raw}\n`], stderr);
  assert.match(stderr, /^build of docs: 0 %\n(?:.*\n)*build of docs: 100 %\nconversion to qcow2: 0 %\n/);

  const checksums = ['qcow2.md5', 'qcow2.sha256', 'raw.md5', 'raw.sha256'];
  const names = ['build.json', ...['log', 'qcow2', 'raw', ...checksums].map((end) => `docs-1.${end}`)];
  assert.deepEqual((await readdir(output)).toSorted(), names.toSorted());
  execFileSync('sha256sum', ['--check', '--quiet', 'docs-1.qcow2.sha256', 'docs-1.raw.sha256'], {
    cwd: output,
  });
  execFileSync('md5sum', ['--check', '--quiet', 'docs-1.qcow2.md5', 'docs-1.raw.md5'], { cwd: output });
  const built = JSON.parse(await readFile(json, 'utf8'));
  const bytes = await readFile(raw);
  assert.deepEqual(built.files[1], {
    file: raw,
    format: 'raw',
    size: bytes.length,
    md5: hexDigest('md5', bytes),
    sha256: hexDigest('sha256', bytes),
  });
  assert.deepEqual(
    [built['image-id'], built['image-name'], built.builder, built.log],
    ['docs-1', 'docs', 'directory-tree', join(output, 'docs-1.log')],
  );
  assert.equal((await stat(qcow2)).mtime.toISOString(), built.built);
  assert.deepEqual(await readdir(images), [], 'images-dir is not used');

  const uploaded = await runCommand(
    'upload',
    qcow2,
    '--provider',
    `directory:${pool}`,
    '--name',
    'docs',
    '--json',
  );
  const { 'external-id': externalId, existed } = JSON.parse(uploaded.stdout);
  assert.deepEqual([uploaded.code, existed], [0, false], uploaded.stderr);
  assert.deepEqual(await readFile(join(pool, externalId)), await readFile(qcow2));
});

test('the command build rejects impossible requests, and prints its log with --verbose', async (t) => {
  const { config, output } = await createBuildSite(t, `${DOCS}\n  - {name: broken, builder: directory-tree}`);
  const build = (...args: readonly string[]): ReturnType<typeof runCommand> =>
    runCommand('build', ...args, '-c', config, '--output', output);
  const cases: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
    [['none'], 3, /disk image "none" is not in .*nodepool\.yaml; choose one of: docs, broken/],
    [['docs', '--image-id', '../up'], 2, /image-id "\.\.\/up" contains a "\/"/],
    [['docs', '--format', 'tape'], 2, /Allowed choices are qcow2, raw/],
    [['docs', '--format', 'tgz'], 1, /its builder makes raw, which qemu-img cannot convert to it/],
    [['broken', '--image-id', 'b'], 1, /"mke2fs" ended with exit code 1, saying: .*; see .*output\/b\.log/],
  ];
  for (const [args, expected, message] of cases) {
    const { code, stdout, stderr } = await build(...args);
    assert.deepEqual([code, stdout], [expected, ''], args.join(' '));
    assert.match(stderr, message);
  }
  assert.deepEqual(await readdir(output), ['b.log']);
  const { stderr } = await build('docs', '--image-id', '1', '--verbose');
  assert.match(stderr, /^\$ mke2fs -q -t ext4 -d /m);
  assert.doesNotMatch(stderr, /%/);
  assert.match((await build('docs', '--image-id', '1')).stderr, /1\.qcow2 exists; choose another --image-id/);
});

test('a program that stops reading the build’s output does not stop the build', async (t) => {
  const { config, output } = await createBuildSite(t);
  const args = ['docs', '-c', config, '--output', output, '--image-id', '1', '--format', 'raw'];
  const build = startBuild(t, undefined, ...args, '--verbose');
  build.child.stderr?.destroy();
  assert.equal(await build.ended, 0);
  assert.deepEqual((await readdir(output)).toSorted(), ['1.log', '1.raw', '1.raw.md5', '1.raw.sha256']);
});

describe('disk-image-create', () => {
  const ELEMENTS = `
  - {name: mini, elements: [wait]}`;

  test('SIGTERM ends a disk-image-create build and leaves only its log', async (t) => {
    const { config, output, directory } = await createBuildSite(t, ELEMENTS);
    const dib = await createFakeDib(directory);
    const build = startBuild(
      t,
      dib,
      'mini',
      '-c',
      config,
      '--output',
      output,
      '--image-id',
      '1',
      '--verbose',
    );
    await build.logged(/^waiting$/);
    const workspaces = await readdir(output);
    assert.equal(workspaces.length, 2, workspaces.join());
    assert.equal(await build.end('SIGTERM'), 6);
    assert.equal(build.log.at(-1), 'nodepool-builder: stopped by SIGTERM');
    assert.deepEqual(await readdir(output), ['1.log']);
  });

  test('the next build removes what a killed one left, and does not disturb a concurrent one', async (t) => {
    const { config, output, directory } = await createBuildSite(t, ELEMENTS);
    const dib = await createFakeDib(directory);
    const args = ['mini', '-c', config, '--output', output];
    const killed = startBuild(t, dib, ...args, '--image-id', 'killed', '--verbose');
    await killed.logged(/^waiting$/);
    const [orphan = ''] = (await readdir(output)).filter((name) => name.startsWith('.'));
    await killed.end('SIGKILL');
    await mkdir(join(output, '.nodepool-build-half.removed/images'), { recursive: true });
    const running = startBuild(t, dib, ...args, '--image-id', 'running', '--verbose');
    await running.logged(/^waiting$/);
    const hidden = (await readdir(output)).filter((name) => name.startsWith('.'));
    assert.ok(hidden.length === 1 && hidden[0] !== orphan, hidden.join());
    await dib.openGate();
    const last = startBuild(t, dib, ...args, '--image-id', 'last');
    assert.deepEqual(
      [await running.ended, await last.ended],
      [0, 0],
      [...running.log, ...last.log].join('\n'),
    );
    const names = (await readdir(output)).filter((name) => !/\.(?:md5|sha256)$/.test(name));
    assert.deepEqual(names.toSorted(), [
      'killed.log',
      'last.log',
      'last.qcow2',
      'running.log',
      'running.qcow2',
    ]);
  });
});

test('the command build imports a Zuul build without a daemon', async (t) => {
  const [zuul, artifacts] = await Promise.all([ZuulDouble.start(), startNginx()]);
  undoAfter(t, () => zuul[Symbol.asyncDispose]());
  undoAfter(t, () => artifacts.stop());
  const directory = await mkdtemp(join(tmpdir(), 'build-command-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const bytes = Buffer.alloc(65_536, 'image');
  await writeFile(join(artifacts.directory, 'image.raw'), bytes);
  await chmod(join(artifacts.directory, 'image.raw'), 0o644);
  const metadata = { type: 'image-raw', sha256: hexDigest('sha256', bytes) };
  const url = `${artifacts.url}/image.raw`;
  zuul.table().add([{ name: 'raw image', url, metadata }], { job: 'build-debian' });
  const config = join(directory, 'nodepool.yaml');
  const image = {
    name: 'debian',
    'api-url': zuul.url,
    project: 'opendev/system-config',
    pipelines: ['periodic'],
    job: 'build-debian',
    artifacts: [{ format: 'raw', type: 'image-raw' }],
    formats: ['raw'],
  };
  await writeFile(config, JSON.stringify({ 'images-dir': directory, 'zuul-images': [image] }));
  const output = join(directory, 'output');
  const { code, stdout, stderr } = await runCommand('build', 'debian', '-c', config, '--output', output);
  assert.equal(code, 0, stderr);
  assert.deepEqual(await readFile(stdout.trim()), bytes);
});
