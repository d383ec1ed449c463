import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { CommandBuilder, type CommandSettings } from '../src/command.ts';
import { type BuildJob, COMMAND_MODULE, type DiskImage, type Image } from '../src/index.ts';
import { imageBuilderContract } from '../src/testing/image-builder-contract.ts';

const DISKIMAGE: DiskImage = { name: 'debian', formats: [] };

/** Builds a file system image of a directory. */
const MAKE_FILE_SYSTEM = `
mkdir root
echo content > root/file
mke2fs -q -t ext4 -d root "$1" 16M
`;

imageBuilderContract(
  'A command',
  (diskimage) =>
    new CommandBuilder(diskimage, { command: ['sh', '-exc', MAKE_FILE_SYSTEM, 'sh', '{output.raw}'] }),
  ['qcow2', 'raw'],
);

async function build(
  t: TestContext,
  settings: CommandSettings,
  diskimage: Partial<DiskImage> = {},
  job: Partial<BuildJob> = {},
): Promise<{ image: Image; lines: readonly string[]; fixture: RepositoryFixture }> {
  const fixture = await RepositoryFixture.open(t);
  const lines: string[] = [];
  const image = await new CommandBuilder({ ...DISKIMAGE, ...diskimage }, settings).build({
    imageId: 'debian-1',
    repository: fixture.repository,
    onLine: (line) => lines.push(line),
    ...job,
  });
  return { image, lines, fixture };
}

function diagnosticsOf(command: readonly string[], formats?: CommandSettings['formats']): string[] {
  const settings: CommandSettings = { command, ...(formats !== undefined && { formats }) };
  const context = { name: 'a', providers: new Map(), absolute: (path: string) => path };
  const diagnostics = Array.from(COMMAND_MODULE.check?.(settings, context) ?? []);
  return diagnostics.map(({ pointer, reason, remedy }) => `${pointer} ${reason}; ${remedy}`);
}

describe('the builder command', () => {
  it('the builder command replaces the placeholders in its arguments, also within a longer argument', async (t) => {
    const script = 'echo "$@"; echo content > "$1"';
    const placeholders = ['{output.raw}', 'id={image-id} name={image-name}', '--work={directory}'];
    const { lines, fixture } = await build(t, { command: ['sh', '-ec', script, 'sh', ...placeholders] });
    const output = lines.find((line) => line.startsWith('/')) ?? '';
    const [, directory] = / id=debian-1 name=debian --work=(\S+)$/.exec(output) ?? [];
    assert.ok(directory?.startsWith(join(fixture.directory, '.nodepool-builder/staging/')), output);
    assert.ok(output.startsWith(`${directory}/debian-1.raw `), output);
  });

  it('the builder command leaves shell variables and template placeholders unchanged', async (t) => {
    const rest = [`$\{image-id}`, '{{image-id}}', '{ image-id }', '{IMAGE}', '{print $1}'];
    const script = 'echo "$@"; echo content > "$1"';
    const { lines } = await build(t, { command: ['sh', '-ec', script, 'sh', '{output.raw}', ...rest] });
    assert.ok(lines.some((line) => line.endsWith(` ${rest.join(' ')}`)));
  });

  it('the builder command runs no shell on its arguments', async (t) => {
    const command = ['cp', '/etc/hostname', '{output.raw}'];
    const { fixture } = await build(t, {
      command: [...command.slice(0, 1), '--suffix=$(id);', ...command.slice(1)],
    });
    assert.deepEqual(
      await readFile(join(fixture.directory, 'debian-1.raw')),
      await readFile('/etc/hostname'),
    );
  });

  it('the builder command has the disk image’s variables, and its own temporary directory', async (t) => {
    const { lines, fixture } = await build(
      t,
      { command: ['sh', '-ec', 'env; echo content > "$1"; touch "$TMPDIR/file"', 'sh', '{output.raw}'] },
      {
        release: 12,
        scriptDir: '/scripts',
        envVars: { MIRROR: 'http://debian.example', DIB_IMAGE_NAME: 'x' },
        publicVariables: ['MIRROR'],
      },
    );
    for (const line of [
      'DIB_RELEASE=12',
      'NODEPOOL_SCRIPTDIR=/scripts',
      'MIRROR=http://debian.example',
      'DIB_IMAGE_NAME=x',
    ]) {
      assert.ok(lines.includes(line), line);
    }
    assert.ok(
      lines.some((line) => line.startsWith(`TMPDIR=${fixture.directory}/.nodepool-builder/staging/`)),
    );
    assert.deepEqual(await readdir(join(fixture.directory, '.nodepool-builder/staging')), []);
  });

  it('the builder command uses private temporary directories below the configured ones, which are removed', async (t) => {
    const [one, two] = [await RepositoryFixture.create(t), await RepositoryFixture.create(t)];
    const script =
      'for d in "$TMPDIR" "$TMP_DIR" "$TMP" "$TEMP"; do touch "$d/left"; echo "$d"; done; echo content > "$1"';
    const { lines } = await build(
      t,
      { command: ['sh', '-ec', script, 'sh', '{output.raw}'] },
      { envVars: { TMPDIR: one.outside, TEMP: two.outside } },
      { environment: { ...process.env, TMP_DIR: two.outside, TMP: two.outside, TEMP: '/nonexistent' } },
    );
    const parents = lines.filter((line) => line.includes('/nodepool-')).map(dirname);
    assert.deepEqual(parents, [one.outside, two.outside, two.outside, two.outside]);
    for (const { outside } of [one, two]) assert.deepEqual(await readdir(outside), []);
  });

  it('the builder command names the variable whose directory for temporary files cannot be used', async (t) => {
    await assert.rejects(
      build(t, { command: ['true', '{output.raw}'] }, { envVars: { TMPDIR: '/nonexistent/tmp' } }),
      withCode(
        'directory-not-usable',
        /^TMPDIR of disk image "debian" cannot be used for temporary files: ENOENT.*; create "\/nonexistent\/tmp", or name another directory in TMPDIR$/,
      ),
    );
  });

  it('the builder command without placeholders writes the formats in "formats"', async (t) => {
    const command = ['sh', '-ec', 'for format in raw tar; do echo content > "$1.$format"; done'];
    const { image } = await build(
      t,
      { command: [...command, 'sh', '{directory}/{image-id}'], formats: ['raw', 'tar'] },
      { formats: ['raw', 'tar'] },
    );
    assert.deepEqual(image.files.map(({ format }) => format).toSorted(), ['raw', 'tar']);
  });

  it('the builder command’s image is converted to the formats that it does not write', () => {
    const command = ['make-image', '{output.raw}', '{output.tar}'];
    const builder = new CommandBuilder({ ...DISKIMAGE, formats: ['qcow2'] }, { command });
    assert.deepEqual(builder.nativeFormats, ['raw', 'tar']);
  });

  it('the builder command fails with its exit code and last output', async (t) => {
    const command = ['sh', '-ec', 'echo no such release; exit 3', 'sh', '{output.raw}'];
    await assert.rejects(
      build(t, { command }),
      withCode('command-failed', /"sh" ended with exit code 3, saying: no such release; see /),
    );
  });

  it('the builder command fails with a remedy where sudo demands a terminal', async (t) => {
    const command = [
      'sh',
      '-ec',
      'echo "sudo: sorry, you must have a tty to run sudo"; exit 1',
      'sh',
      '{output.raw}',
    ];
    await assert.rejects(
      build(t, { command }),
      withCode(
        'command-failed',
        /to run sudo; sudoers requires a terminal; add to it: Defaults:USER !requiretty; see /,
      ),
    );
  });

  it('the builder command fails if it leaves no image', async (t) => {
    await assert.rejects(
      build(t, { command: ['true', '{output.raw}'] }),
      withCode('image-missing', /debian-1\.raw was not made/),
    );
  });

  it('the builder command also rejects invalid settings when it is created', () => {
    assert.throws(
      () => new CommandBuilder(DISKIMAGE, { command: [] }),
      withCode('invalid-configuration', /^disk image "debian": command names no program; /),
    );
  });
});

describe('the settings of the builder command', () => {
  it('the builder command accepts each placeholder in an argument of its own', () => {
    assert.deepEqual(
      diagnosticsOf(['make', '{output.raw}', '{image-id}', '{image-name}', '{directory}']),
      [],
    );
    assert.deepEqual(diagnosticsOf(['make', '{output.raw}'], ['raw', 'qcow2']), []);
    assert.deepEqual(diagnosticsOf(['make', '{directory}'], ['raw']), []);
    assert.deepEqual(diagnosticsOf(['make', '{output.raw}'], null), []);
  });

  for (const [what, command, formats, diagnostic] of [
    ['an empty list', [], undefined, '/command names no program; write a list: the program, its arguments'],
    ['an empty program', ['', 'a'], undefined, /^\/command names no program; /],
    [
      'an unknown placeholder',
      ['make', '{output.raw}', '--name={name}'],
      undefined,
      '/command/2 has the unknown placeholder {name}; use {output.FORMAT}, {image-id}, {image-name} or {directory}',
    ],
    [
      'an unknown format',
      ['make', '{output.img}', '{output.raw}'],
      undefined,
      /^\/command\/1 has \{output\.img\}, which is not an image format; use one of qcow2, raw, /,
    ],
    [
      'a placeholder of a format that is not built',
      ['make', '{output.raw}'],
      ['qcow2'],
      '/command/1 has {output.raw}, but "formats" lacks raw: that file would be lost; add raw to "formats", or remove "formats"',
    ],
    [
      'no format',
      ['make', '{directory}'],
      undefined,
      '/command does not name the formats that it writes; pass {output.raw} or {output.qcow2} as an argument, or add "formats"',
    ],
    [
      'a placeholder in a shell script',
      ['/bin/bash', '-ec', 'make > {output.raw}'],
      undefined,
      /^\/command\/2 has \{output\.raw\} in a shell script: the shell would run code that an image-id contains; /,
    ],
  ] as const) {
    it(`the builder command’s settings are rejected with ${what}`, () => {
      const found = diagnosticsOf(command, formats);
      assert.equal(found.length, 1, found.join('\n'));
      if (typeof diagnostic === 'string') assert.equal(found[0], diagnostic);
      else assert.match(found[0] ?? '', diagnostic);
    });
  }
});
