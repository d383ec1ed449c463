import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createProgram } from '../../packages/nodepool-builder/src/commands/main.ts';
import { EXIT_CODES, type ExitReason } from '../../packages/nodepool-builder/src/terms/exit-codes.ts';
import { freePort } from '../../scripts/free-port.ts';
import { type BuilderProcess, startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { type Outcome, runCommand } from '../fixtures/command-outcome.ts';
import { setUp } from '../fixtures/set-up.ts';

/** Disk image and provider in the files. */
const NAMES = {
  diskimages: [{ name: 'docs', builder: 'directory-tree' }],
  providers: [
    { name: 'pool', type: 'directory', directory: 'pool', images: [{ name: 'docs', diskimage: 'docs' }] },
    {
      name: 'full',
      type: 'directory',
      directory: 'pool',
      images: ['a', 'b'].map((name) => ({ name, diskimage: 'docs' })),
    },
  ],
};

const NOBODY_THERE = [{ host: '127.0.0.1', port: 1 }];

let directory: string;
let builder: BuilderProcess;
let listener: Server;

setUp(async (undo) => {
  directory = await mkdtemp(join(tmpdir(), 'exit-codes-'));
  undo(() => rm(directory, { recursive: true, force: true }));
  await Promise.all(['images', 'other-images', 'pool'].map((name) => mkdir(join(directory, name))));
  const write = (name: string, settings: object): Promise<void> =>
    writeFile(join(directory, name), JSON.stringify({ 'images-dir': 'other-images', ...NAMES, ...settings }));
  await write('held.yaml', {
    'images-dir': 'images',
    'gearman-servers': [{ host: '127.0.0.1', port: await freePort() }],
  });
  await write('alone.yaml', { 'gearman-servers': NOBODY_THERE, manager: { store: 'none.sqlite' } });
  const store = 'postgresql://nobody@127.0.0.1:1/none';
  await write('database.yaml', { 'gearman-servers': NOBODY_THERE, manager: { store } });
  await writeFile(join(directory, 'invalid.yaml'), 'images-dir: 5\n');
  for (const name of ['empty.raw', 'image', 'image.qcow2']) await writeFile(join(directory, name), '');
  await writeFile(join(directory, 'disk.raw'), 'a disk');
  await writeFile(join(directory, 'data.json'), '{}');
  builder = await startBuilder(join(directory, 'held.yaml'), '--embedded-gearmand');
  undo(() => builder.end('SIGTERM'));
  listener = createServer().listen(0, '127.0.0.1');
  undo(() => void listener.close());
  process.chdir(directory);
  undo(() => process.chdir('/'));
});

/** Command lines with their exit code and a pattern for the error. */
const CASES: readonly (readonly [line: string, reason: ExitReason, error: RegExp])[] = [
  // Options that require, or exclude, each other.
  ['prune --provider directory:pool', 'usage', /name what to delete, with --keep, --older-than or both/],
  ['latest --provider pool --cloud-image a --filter name=b', 'usage', /cannot be used with option/],
  ['latest --provider directory:pool --filter color=red', 'usage', /color/],
  ['latest --provider directory: --filter name=b', 'usage', /--provider directory: is incomplete/],
  ['validate --schema a.yaml b.yaml', 'usage', /--schema takes one file/],
  ['validate --schema --json', 'usage', /cannot be used with option/],
  ['validate -c a.yaml b.yaml', 'usage', /both with and without -c/],
  ['gearmand --tls-cert cert.pem', 'usage', /give both --tls-cert and --tls-key/],
  ['gearmand --access-list access.yaml', 'usage', /give --tls-ca with --access-list/],
  ['manage --log-level debug -l logging.yaml', 'usage', /cannot be used with option/],
  ['-d --log-level debug -l logging.yaml', 'usage', /cannot be used with option/],
  ['-c alone.yaml image-build docs -c other.yaml', 'usage', /given twice/],
  ['-d rebuild docs', 'usage', /not an option of rebuild/],
  ['upload image --provider directory:pool --name a', 'usage', /give it with --format/],
  ['upload empty.raw --provider directory:pool --name a/b', 'usage', /--name "a\/b" contains/],
  ['convert image.qcow2 --format qcow2', 'usage', /is already qcow2/],
  ['image-build docs --image-id ../up -c alone.yaml', 'usage', /image-id "\.\.\/up" contains/],
  ['build docs --image-id ../up -c alone.yaml', 'usage', /image-id "\.\.\/up" contains/],
  ['image-upload x --provider full -c alone.yaml', 'usage', /choose with --image-name: a, b/],

  ['image-upload x --provider other -c alone.yaml', 'not-found', /choose one of: pool, full/],
  ['build other -c alone.yaml', 'not-found', /choose one of: docs/],
  ['upload none.raw --provider directory:pool --name a', 'not-found', /none\.raw cannot be read/],
  ['convert none.raw --format qcow2', 'not-found', /none\.raw cannot be read/],
  ['latest --provider directory:pool', 'not-found', /no image in provider/],
  ['prune --provider other --keep 1 -c alone.yaml', 'not-found', /choose one of: pool, full/],
  ['reap --provider other -c alone.yaml', 'not-found', /choose one of: pool, full/],
  ['import-image-data none.json -c alone.yaml', 'not-found', /none\.json cannot be read/],
  ...['plan -c', 'rebuild docs -c', 'manage -c', 'validate', 'validate -c alone.yaml -s'].map(
    (line) => [`${line} none.yaml`, 'not-found', /none\.yaml:1:1: cannot read the file: ENOENT/] as const,
  ),
  ['validate none.yaml invalid.yaml', 'failed', /none\.yaml:1:1: .*\n.*invalid\.yaml:1:1: /],
  ...[
    'image-status',
    'dib-image-list',
    'alien-image-list',
    'rollback docs',
    'dib-image-delete x',
    'upload-delete x',
    'export-image-data x',
  ].map((line) => [`${line} -c alone.yaml`, 'not-found', /no manager has run here/] as const),

  ['-d -c held.yaml', 'refused', /images.* is in use by process|another|process \d+/],
  ['-c held.yaml -p pid', 'refused', /process \d+/],

  ['image-build docs -c alone.yaml', 'unreachable', /no job server responds at 127\.0\.0\.1:1/],
  ['image-upload x --provider pool -c alone.yaml', 'unreachable', /no job server responds/],
  ['image-delete x -c alone.yaml', 'unreachable', /no job server responds/],
  ['image-list --offered -c alone.yaml', 'unreachable', /no job server responds/],
  ...[
    'plan',
    'image-status',
    'dib-image-list',
    'alien-image-list',
    'image-list',
    'rebuild docs',
    'rollback docs',
    'dib-image-delete x',
    'upload-delete x',
    'export-image-data x',
    'import-image-data data.json',
    'manage',
    'manage --dry-run',
  ].map(
    (line) =>
      [
        `${line} -c database.yaml`,
        'unreachable',
        /PostgreSQL database "none" at 127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/,
      ] as const,
  ),
];

/** Commands that exit by themselves, or change this process, run in another process. */
async function run(line: string): Promise<Outcome> {
  const args = line.split(' ');
  return await (/^(?:-|manage|gearmand)/.test(line) ? runCommand(...args) : runInProcess(...args));
}

const program = await createProgram();
const commands = program.createHelp().visibleCommands(program);

describe('the exit code', () => {
  for (const [line, reason, error] of CASES) {
    it(`the command line "${line}" exits with the code "${reason}"`, async () => {
      const { code, stdout, stderr } = await run(line);
      assert.equal(code, EXIT_CODES[reason].code, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, error);
      assert.doesNotMatch(stderr, /^ {4}at /m, 'no stack');
    });
  }

  it('a command whose job server or status page finds its port taken exits with the code "refused"', async () => {
    const { port } = listener.address() as { readonly port: number };
    const other = { 'gearman-servers': [{ host: '127.0.0.1', port: await freePort() }] };
    await writeFile('web.yaml', JSON.stringify({ 'images-dir': 'other-images', ...other }));
    const taken = { 'images-dir': 'other-images', 'gearman-servers': [{ host: '127.0.0.1', port }] };
    await writeFile('taken.yaml', JSON.stringify(taken));
    for (const [line, error] of [
      [`gearmand -p ${port}`, /EADDRINUSE.*; stop the program that listens there/],
      ['gearmand -L 192.0.2.1 -p 0', /EADDRNOTAVAIL.*; choose another address or port/],
      ['-d --embedded-gearmand -c taken.yaml', /EADDRINUSE.*; stop the program that listens there/],
      [`-d --embedded-gearmand --web ${port} -c web.yaml`, /EADDRINUSE.*; stop the program that listens/],
      ['-d --embedded-gearmand --web 192.0.2.1:1 -c web.yaml', /EADDRNOTAVAIL.*; choose another address/],
    ] as const) {
      const { code, stderr } = await run(line);
      assert.equal(code, EXIT_CODES.refused.code, stderr);
      const errors = stderr.split('\n').filter((one) => error.test(one));
      assert.equal(errors.length, 1, stderr);
      assert.doesNotMatch(stderr, /^ {4}at /m, 'no stack');
    }
  });

  for (const command of commands.filter((one) => one.name() !== 'help')) {
    const name = command.name();
    const all = command.registeredArguments.map(() => 'disk.raw');
    const operands = command.registeredArguments.filter(({ required }) => required).map(() => 'disk.raw');
    const options = command.options
      .filter(({ mandatory }) => mandatory)
      .flatMap(({ long, argChoices: [choice] = ['pool'] }) => [long ?? '', choice ?? '']);

    it(`the command ${name} exits with the code "usage" for unknown options, and for too many or too few arguments`, async () => {
      const lines = [
        [...operands, '--no-such-option'],
        ...(command.registeredArguments.some(({ variadic }) => variadic) ? [] : [[...all, 'more']]),
        ...(operands.length > 0 ? [[]] : []),
      ];
      for (const line of lines) {
        const { code, stderr } = await runInProcess(name, ...options, ...line);
        assert.equal(code, EXIT_CODES.usage.code, stderr);
        assert.match(stderr, new RegExp(`^error: [^]*\nUsage: nodepool-builder ${name} `));
      }
    });

    if (!command.options.some(({ long }) => long === '--config')) continue;
    it(`the command ${name} exits with the code "failed" for an invalid file`, async () => {
      const more = name === 'prune' ? ['--keep', '1'] : [];
      const line = [name, ...operands, ...options, ...more, '-c', 'invalid.yaml'];
      const { code, stdout, stderr } = await runInProcess(...line);
      assert.equal(code, EXIT_CODES.failed.code, stderr);
      assert.match(name === 'doctor' ? stdout : stderr, /invalid\.yaml:1:1: images-dir must be a string/);
    });
  }
});
