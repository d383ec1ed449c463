import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { createGatedQemuImg } from '../fixtures/gated-qemu-img.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const SIZE = 4 * 1024 * 1024;

/** Creates a directory with the image `debian.raw`. */
async function createDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'convert-command-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'debian.raw'), Buffer.alloc(SIZE, 'image'));
  return directory;
}

async function qemuImg(...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)('qemu-img', args)).stdout;
}

test('the command convert writes the image in another format, with checksums, and replaces an older file', async (t) => {
  const directory = await createDirectory(t);
  const [raw, qcow2] = ['debian.raw', 'debian.qcow2'].map((name) => join(directory, name)) as [
    string,
    string,
  ];
  await writeFile(qcow2, 'an older image');
  await writeFile(`${qcow2}.md5`, 'its digest');
  const { code, stdout, stderr } = await runCommand('convert', raw, '--format', 'qcow2');
  assert.deepEqual([code, stdout], [0, `${qcow2}\n`], stderr);
  assert.match(stderr, /^conversion of debian\.raw to qcow2: 0 %\n(?:.*\n)*.*: 100 %\n$/);
  assert.match(await qemuImg('compare', '-f', 'raw', '-F', 'qcow2', raw, qcow2), /identical/);
  await promisify(execFile)('md5sum', ['--check', 'debian.qcow2.md5'], { cwd: directory });
  await promisify(execFile)('sha256sum', ['--check', 'debian.qcow2.sha256'], { cwd: directory });

  const images = join(directory, 'images');
  await mkdir(images);
  const back = await runCommand('convert', qcow2, '--format', 'raw', '--output', images, '--json');
  const bytes = await readFile(raw);
  assert.equal(back.stderr, '');
  assert.deepEqual(JSON.parse(back.stdout), {
    file: join(images, 'debian.raw'),
    format: 'raw',
    size: SIZE,
    md5: createHash('md5').update(bytes).digest('hex'),
    sha256: createHash('sha256').update(bytes).digest('hex'),
    source: { file: qcow2, format: 'qcow2', size: (await readFile(qcow2)).length },
  });
  assert.deepEqual(await readFile(join(images, 'debian.raw')), bytes);

  const missing = ['--json-file', join(directory, 'missing/convert.json')];
  const unwritten = await runCommand('convert', raw, '--format', 'qcow2', ...missing);
  assert.deepEqual([unwritten.code, unwritten.stdout], [1, `${qcow2}\n`]);
  assert.match(
    unwritten.stderr,
    /\nnodepool-builder: cannot write .*convert\.json: ENOENT.*; choose another --json-file\n$/,
  );
});

test('the command convert rejects what a builder rejects, and leaves nothing', async (t) => {
  const directory = await createDirectory(t);
  const path = (name: string): string => join(directory, name);
  await qemuImg('create', '-q', '-f', 'qcow2', path('disk.qcow2'), '2G');
  await qemuImg('create', '-q', '-f', 'qcow2', '-b', path('disk.qcow2'), '-F', 'qcow2', path('backed.qcow2'));
  const config = path('nodepool.yaml');
  await writeFile(config, 'images-dir: images\nvirtual-size-limit: 1\n');
  const before = await readdir(directory);
  const cases: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
    [[path('disk.qcow2'), '--format', 'qcow2'], 2, /is already qcow2; choose another --format/],
    [
      [path('disk.qcow2'), '--format', 'raw', '-c', config],
      1,
      /has 2 GiB, more than 1; .* virtual-size-limit/,
    ],
    [[path('backed.qcow2'), '--format', 'raw'], 1, /names another file, ".*disk\.qcow2"/],
    [
      [path('debian.raw'), '--source-format', 'vmdk', '--format', 'qcow2'],
      1,
      /not a vmdk image: it has no header/,
    ],
    [
      [path('disk.qcow2'), '--source-format', 'raw', '--format', 'vmdk'],
      1,
      /not a raw image: .* a qcow2 image/,
    ],
    [[path('nodepool.yaml'), '--format', 'raw'], 2, /does not show its format; give it with --source-format/],
    [[path('none.raw'), '--format', 'qcow2'], 3, /cannot be read: ENOENT.*; name an image file/],
    [[path('debian.raw'), '--format', 'tgz'], 2, /Allowed choices are qcow2, raw/],
    [
      [path('debian.raw'), '--format', 'qcow2', '--output', path('none/x')],
      1,
      /cannot write to .*; name another/,
    ],
    [[path('debian.raw'), '--format', 'qcow2', '--output', path('debian.raw')], 2, /is the image itself/],
  ];
  for (const [args, expected, message] of cases) {
    const { code, stdout, stderr } = await runCommand('convert', ...args);
    assert.deepEqual([code, stdout], [expected, ''], `${args.join(' ')}: ${stderr}`);
    assert.match(stderr, message);
  }
  assert.deepEqual(await readdir(directory), before);
});

test('SIGTERM stops a conversion and leaves the file with the final name unchanged', async (t) => {
  const directory = await createDirectory(t);
  await writeFile(join(directory, 'debian.qcow2'), 'an older image');
  const before = await readdir(directory);
  const programs = await mkdtemp(join(tmpdir(), 'gated-qemu-img-'));
  undoAfter(t, () => rm(programs, { recursive: true }));
  const gate = await createGatedQemuImg(programs);
  const [command, args] = builderCommand('convert', join(directory, 'debian.raw'), '--format', 'qcow2');
  const conversion = spawnDaemon(['env', [`PATH=${programs}:${process.env.PATH}`, command, ...args]]);
  undoAfter(t, () => (conversion.child.exitCode === null ? conversion.end('SIGKILL') : undefined));
  await gate.waiting();
  assert.equal(await conversion.end('SIGTERM'), 6);
  assert.equal(conversion.log.at(-1), 'nodepool-builder: stopped by SIGTERM');
  assert.deepEqual(await readdir(directory), before);
  assert.equal(await readFile(join(directory, 'debian.qcow2'), 'utf8'), 'an older image');
});
