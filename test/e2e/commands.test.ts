import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { Admin } from '@nodepool-builder/gearman-node';
import { type BuilderProcess, builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { setUp } from '../fixtures/set-up.ts';
import { createSite, type Site } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

let server: Gearmand;
let site: Site;
let builder: BuilderProcess;

setUp(async (undo) => {
  server = await startGearmand();
  undo(() => server.stop());
  site = await createSite(server.port);
  undo(() => site.remove());
  builder = await startBuilder(site.config);
  undo(() => builder.end('SIGTERM'));
});

describe('image-build, image-list, image-upload and image-delete', () => {
  it('the image commands print results on standard output, and progress in plain lines on standard error', async () => {
    const build = await runCommand('image-build', 'docs', '-c', site.config);
    assert.equal(build.code, 0, build.stderr);
    const imageId = build.stdout.trim();
    assert.match(imageId, /^docs-\d{14}-[0-9a-f]{4}$/);
    assert.match(build.stderr, /^image-build:docs: 100 %$/m);

    const upload = await runCommand(
      'image-upload',
      imageId,
      '--provider',
      'pool',
      '--image-name',
      'docs',
      '-c',
      site.config,
    );
    assert.equal(upload.code, 0, upload.stderr);
    assert.equal(upload.stdout, `docs-${imageId}.qcow2\n`);
    assert.ok(existsSync(join(site.pool, `docs-${imageId}.qcow2`)));

    const list = await runCommand('image-list', '--json', '-c', site.config);
    assert.equal(list.code, 0, list.stderr);
    const [image, ...others] = JSON.parse(list.stdout);
    assert.deepEqual(others, []);
    assert.deepEqual(
      { ...image, size: undefined, built: undefined },
      {
        'image-id': imageId,
        'image-name': 'docs',
        formats: ['qcow2', 'raw'],
        size: undefined,
        built: undefined,
        builders: 1,
        running: [],
      },
    );
    const table = await runCommand('image-list', '-c', site.config);
    assert.match(table.stdout, new RegExp(`IMAGE-ID .*BUILDERS[^]*${imageId} +docs +qcow2,raw +[\\d.]+ MiB`));

    const deletion = await runCommand('image-delete', imageId, '-c', site.config);
    assert.equal(deletion.code, 0, deletion.stderr);
    await waitUntil('an empty list', async () => {
      return (await runCommand('image-list', '--json', '-c', site.config)).stdout === '[]\n';
    });
  });

  it('the image commands show a progress bar on a terminal', async () => {
    const command = builderCommand('image-build', 'docs', '-c', site.config).flat().join(' ');
    const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null']);
    assert.match(stdout, /image-build:docs ={30} 100 % /);
  });

  it('the image commands list the alternatives if no builder offers the function', async () => {
    const build = await runCommand('image-build', 'dosc', '-c', site.config);
    assert.deepEqual(build, {
      code: 3,
      stdout: '',
      stderr: 'nodepool-builder: no builder offers image-build:dosc; choose one of: docs\n',
    });
  });

  it('the image commands print the builder’s reason and host if a job fails', async () => {
    const build = await runCommand('image-build', 'docs', '--image-id', 'built', '-c', site.config);
    assert.equal(build.code, 0, build.stderr);
    const upload = ['image-upload', 'built', '--provider', 'pool', '--image-name', 'none', '-c', site.config];
    const { code, stderr } = await runCommand(...upload);
    assert.equal(code, 1);
    const where = `image-upload:built failed on ${hostname()}`;
    assert.ok(
      stderr.includes(`nodepool-builder: ${where}: provider "pool" has no image "none"; add it`),
      stderr,
    );
    assert.equal((await runCommand('image-delete', 'built', '-c', site.config)).code, 0);
  });

  it('the image commands list the providers if the name is wrong or missing', async () => {
    const unknown = await runCommand('image-upload', 'x', '--provider', 'other', '-c', site.config);
    assert.match(unknown.stderr, /provider "other" is not in .*; choose one of: pool/);
    const several = await runCommand('image-upload', 'x', '--provider', 'pool', '-c', site.config);
    assert.match(several.stderr, /several images; choose with --image-name: docs, mini/);
    assert.deepEqual([unknown.code, several.code], [3, 2]);
  });

  it('the image commands reject an invalid image id without a request', async () => {
    const { code, stderr } = await runCommand(
      'image-build',
      'docs',
      '--image-id',
      '../up',
      '-c',
      site.config,
    );
    assert.equal(code, 2);
    assert.match(stderr, /image-id "\.\.\/up" contains a "\/"/);
  });

  it('the image commands name the address of a job server that cannot be reached', async () => {
    const config = join(site.directory, 'elsewhere.yaml');
    await writeFile(config, 'images-dir: /i\ngearman-servers: [{host: 127.0.0.1, port: 1}]\n');
    const { code, stderr } = await runCommand('image-build', 'docs', '-c', config);
    assert.equal(code, 5);
    assert.match(
      stderr,
      /no job server responds at 127\.0\.0\.1:1; start nodepool-builder or gearmand there/,
    );
  });
});

describe('the command line', () => {
  it('the command line prints help, with the commands in groups', async () => {
    const { code, stdout } = await runCommand('--help');
    assert.equal(code, 0);
    const groups = new Map<string, readonly string[]>();
    for (const block of stdout.split('\n\n')) {
      const [heading = '', ...lines] = block.split('\n');
      groups.set(
        heading,
        lines.flatMap((line) => /^ {2}([a-z][a-z-]*) /.exec(line)?.[1] ?? []),
      );
    }
    const inGroup = (start: string): readonly string[] | undefined =>
      [...groups].find(([heading]) => heading.startsWith(start))?.[1];
    assert.deepEqual(inGroup('Daemon'), ['serve', 'gearmand', 'validate', 'init', 'doctor', 'notify-test']);
    assert.deepEqual(inGroup('Jobs'), [
      'image-build',
      'image-upload',
      'image-delete',
      'logs',
      'cancel',
      'image-list',
    ]);
    assert.equal(inGroup('Manager')?.[0], 'manage');
    assert.deepEqual(inGroup('In a CI job'), [
      'build',
      'convert',
      'upload',
      'latest',
      'verify',
      'prune',
      'reap',
    ]);
    for (const word of ['--build-workers', 'Similar commands:', 'Examples:']) {
      assert.ok(stdout.includes(word), word);
    }
  });

  it('the command line prints the package’s version', async () => {
    const { version } = JSON.parse(
      await readFile(join(import.meta.dirname, '../../packages/nodepool-builder/package.json'), 'utf8'),
    );
    for (const flag of ['--version', '-V']) {
      assert.deepEqual(await runCommand(flag), { code: 0, stdout: `${version}\n`, stderr: '' });
    }
  });

  it('an invalid command line is rejected with exit code 2, as by argparse', async () => {
    for (const args of [
      ['--no-such-option'],
      ['--build-workers', 'many'],
      ['image-build'],
      ['gearmand', '-p', '70000'],
    ]) {
      const { code, stderr } = await runCommand(...args);
      assert.equal(code, 2, args.join(' '));
      assert.match(stderr, /^error: /);
    }
  });
});

describe('a reader that ends early', () => {
  it('a program that stops reading early gets its lines, and the command ends without an error', async () => {
    const [file, args] = builderCommand('validate', '--schema', '-c', site.config);
    const pipe = 'set -o pipefail; "$@" | head -n 1';
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', pipe, 'bash', file, ...args]);
    assert.deepEqual({ stdout, stderr }, { stdout: '{\n', stderr: '' });
  });
});

describe('validate', () => {
  it('validate reports each error with its line and a remedy', async () => {
    const config = join(site.directory, 'faulty.yaml');
    await writeFile(config, 'images-dir: 5\ndiskimages: [{name: a, elments: b}]\n');
    const { code, stdout, stderr } = await runCommand('validate', '-c', config);
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(
      stderr,
      /faulty\.yaml:1:1: images-dir must be a string, but is a number; put it in quotes$/m,
    );
  });

  it('validate rejects settings that make jobs fail on every host, though the daemon accepts them', async () => {
    const config = join(site.directory, 'failing-jobs.yaml');
    await writeFile(config, 'images-dir: /i\ndiskimages:\n  - {name: a, elements: "vm \'base"}\n');
    const { code, stdout, stderr } = await runCommand('validate', '-c', config);
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /failing-jobs\.yaml:1:1: warning: images-dir .* does not exist on this host/);
    assert.match(
      stderr,
      /failing-jobs\.yaml:3:15: diskimages\[0\]\.elements has an unmatched quote .*: builds fail/,
    );
  });

  it('validate accepts a valid file, and prints warnings', async () => {
    const config = join(site.directory, 'good.yaml');
    await writeFile(
      config,
      'images-dir: /i\ndiskimages: [{name: a, elements: [debian-minimal], relase: b}]\n',
    );
    const { code, stdout, stderr } = await runCommand('validate', '-c', config);
    assert.equal(code, 0);
    assert.match(stdout, /good\.yaml is valid: 1 disk image, 0 providers/);
    assert.match(stderr, /warning: .*did you mean "release"/);
  });

  it('validate prints a schema for editors', async () => {
    const config = join(site.directory, 'for-editors.yaml');
    await writeFile(config, 'images-dir: /i\n');
    const { code, stdout } = await runCommand('validate', '--schema', '-c', config);
    assert.equal(code, 0);
    const { required } = JSON.parse(stdout) as { readonly required: readonly string[] };
    assert.deepEqual(required, ['images-dir']);
  });
});

describe('gearmand', () => {
  it('gearmand runs a job server until SIGTERM', async (t) => {
    const child = spawn(...builderCommand('gearmand', '-p', '0'), { stdio: ['ignore', 'pipe', 'ignore'] });
    undoAfter(t, () => child.kill('SIGKILL'));
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    const port = Number(/^gearmand listens on 127\.0\.0\.1:(\d+)$/.exec(line)?.[1]);
    const admin = new Admin({ host: '127.0.0.1', port });
    assert.ok(await admin.version());
    await admin.close();
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });
});

describe('a daemon without -d', () => {
  it('the daemon without -d serves in the background, with a pid file, until SIGTERM', async (t) => {
    const other = await createSite(server.port);
    undoAfter(t, () => other.remove());
    const pidFile = join(other.directory, 'pid');
    const { code, stdout, stderr } = await runCommand('-c', other.config, '-p', pidFile);
    const pid = Number(await readFile(pidFile, 'utf8'));
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, new RegExp(`^nodepool-builder serves in the background as process ${pid}; log: `));
    undoAfter(t, () => endIfAlive(pid));
    process.kill(pid, 'SIGTERM');
    await waitUntil('the removal of the pid file', () => !existsSync(pidFile));
  });

  it('the daemon without -d prints the reason if it fails to start', async () => {
    const { code, stderr } = await runCommand('-c', site.config, '-p', join(site.directory, 'other-pid'));
    assert.equal(code, 4);
    assert.match(stderr, new RegExp(`${builder.child.pid}`), 'images-dir belongs to another builder');
  });
});

function endIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended, as expected
  }
}
