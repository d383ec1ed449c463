// Not a unit test: it runs the whole command, also on a terminal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { load } from 'js-yaml';
import { builderCommand } from '../../../../test/fixtures/builder-process.ts';
import { runInProcess } from '../../../../test/fixtures/command-in-process.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';

/**
 * Runs `init` on a terminal, and types each answer when its question has been asked. Returns its exit code and what the
 * terminal showed.
 */
async function answer(
  answers: readonly (readonly [question: string, typed: string])[],
  ...options: readonly string[]
): Promise<readonly [number, string]> {
  const [command, args] = builderCommand('init', ...options);
  const line = [command, ...args].map((word) => `'${word}'`).join(' ');
  const terminal = spawn('script', ['-qec', `exec ${line}`, '/dev/null']);
  const closed = once(terminal, 'close');
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  for (const [question, typed] of answers) {
    await waitUntil(question, () => shown.includes(question) || terminal.exitCode !== null);
    terminal.stdin.write(typed);
  }
  const [code] = (await closed) as [number];
  return [code, shown];
}

describe('init', () => {
  it('init writes a file that validate accepts without a warning', async (t) => {
    const directory = temporaryDirectory(t);
    const [file, images, shelf] = ['nodepool.yaml', 'images', 'shelf'].map((name) =>
      join(directory, name),
    ) as [string, string, string];
    await Promise.all([mkdir(images), mkdir(shelf)]);
    const line =
      `init --output ${file} --images-dir ${images} --all-in-one --diskimage web --release trixie ` +
      `--provider shelf:directory:${shelf} --gearman-server [::1]:4731 --gearman-server jobs --elements`;
    const { code, stdout, stderr } = await runInProcess(...line.split(' '), 'debian-minimal vm simple-init');
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, new RegExp(`^wrote ${file}; next:\n  nodepool-builder validate --strict `));
    assert.deepEqual(load(await readFile(file, 'utf8')), {
      'images-dir': images,
      'gearman-servers': [{ host: '::1', port: 4731 }, { host: 'jobs' }],
      manager: { 'retry-delay': 60 },
      diskimages: [{ name: 'web', elements: ['debian-minimal', 'vm', 'simple-init'], release: 'trixie' }],
      providers: [
        { name: 'shelf', type: 'directory', directory: shelf, images: [{ name: 'web', diskimage: 'web' }] },
      ],
    });
    const { code: strict, stderr: warnings } = await runInProcess('validate', '--strict', file);
    assert.deepEqual([strict, warnings], [0, '']);
  });

  it('init explains each key in a comment, in lines of at most 100 columns', async (t) => {
    const file = join(temporaryDirectory(t), 'nodepool.yaml');
    await runInProcess('init', '--output', file, '--cloud', 'west');
    const lines = (await readFile(file, 'utf8')).split('\n');
    assert.deepEqual(
      lines.filter((line) => line.length > 100),
      [],
    );
    for (const key of ['images-dir: ', 'diskimages:', 'providers:', '    cloud: west']) {
      const at = lines.findIndex((line) => line.startsWith(key));
      assert.match(lines[at - 1] ?? `no ${key}`, /^ *# /);
    }
  });

  it('init does not overwrite a file', async (t) => {
    const file = join(temporaryDirectory(t), 'nodepool.yaml');
    await writeFile(file, 'mine');
    const { code, stderr } = await runInProcess('init', '--output', file);
    assert.equal(code, 4);
    assert.match(stderr, /exists; name another file with --output/);
    assert.equal(await readFile(file, 'utf8'), 'mine');
  });

  it('init rejects answers that make an invalid file, and writes nothing', async (t) => {
    const file = join(temporaryDirectory(t), 'nodepool.yaml');
    for (const [options, reason] of [
      [['--provider', 'shelf'], /NAME:directory:PATH/],
      [['--gearman-server', 'jobs:99999'], /port is 99999/],
      [['--elements', "vm 'base"], /list of elements/],
      [['--diskimage', ''], /name/],
    ] as const) {
      const { code, stderr } = await runInProcess('init', '--output', file, ...options);
      assert.equal(code, 2, stderr);
      assert.match(stderr, reason);
      assert.equal(existsSync(file), false);
    }
  });

  it('init asks on a terminal for what the options do not say', async (t) => {
    const directory = temporaryDirectory(t);
    const file = join(directory, 'nodepool.yaml');
    const answers = [join(directory, 'images'), '', '', '', '', 'jobs:4730', 'no', ''].join('\n');
    const [code, shown] = await answer([['Directory', answers]], '--output', file, '--diskimage', 'web');
    assert.equal(code, 0, shown);
    assert.match(shown, /Its elements of diskimage-builder \[debian-minimal debian-fixes vm cloud-init\]: /);
    assert.doesNotMatch(shown, /Name of the first disk image/);
    assert.deepEqual(load(await readFile(file, 'utf8')), {
      'images-dir': join(directory, 'images'),
      'gearman-servers': [{ host: 'jobs', port: 4730 }],
      diskimages: [
        { name: 'web', elements: ['debian-minimal', 'debian-fixes', 'vm', 'cloud-init'], release: 'trixie' },
      ],
      providers: [],
    });
  });

  it('init writes nothing if the questions end early', async (t) => {
    const file = join(temporaryDirectory(t), 'nodepool.yaml');
    const [code, shown] = await answer(
      [
        ['Directory', '/images\n'],
        ['Name', '\x04'],
      ],
      '--output',
      file,
    );
    assert.equal(code, 6, shown);
    assert.match(shown, /the questions were not answered; nothing was written/);
    assert.equal(existsSync(file), false);
  });
});
