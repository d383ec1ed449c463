import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { bootableDisk } from '../../../../test/fixtures/qemu/boot-sector.ts';
import { RepositoryFixture } from '../../../../test/fixtures/repository-fixture.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import type { BootValidation } from '../../src/disk-image.ts';
import type { BuildJob, ImageFormat, Progress } from '../../src/index.ts';
import { assertNoOrphans } from '../host-orphans.ts';
import { ScriptedBuilder } from '../scripted-builder.ts';

/** The machine's code is interpreted, because a test must not depend on the host's virtualisation. */
const TCG = { accelerator: 'tcg', memory: 64 } as const;

const GREETING = 'mini: ready\r\nmini login: ';

interface BuildOptions extends Omit<BuildJob, 'imageId' | 'repository'> {
  readonly boot: Omit<BootValidation, 'accelerator' | 'memory'>;
  readonly text?: string;
  readonly formats?: readonly ImageFormat[];
  readonly buildTimeout?: number;
  /** Code that the machine runs after the text. A reset ends QEMU. */
  readonly end?: 'halt' | 'reset';
}

/** Builds a disk that prints a greeting. */
async function build(
  { repository, outside }: RepositoryFixture,
  { boot, text = GREETING, formats = ['raw'], buildTimeout, end, ...job }: BuildOptions,
): Promise<void> {
  const raw = join(outside, 'disk');
  await writeFile(raw, bootableDisk(text, end));
  const builder = new ScriptedBuilder(
    async ({ outputPath, run }) => {
      for (const format of formats) {
        const driver = format === 'vhd' ? 'vpc' : format;
        await run('qemu-img', ['convert', '-f', 'raw', '-O', driver, raw, outputPath(format)]);
      }
    },
    {
      formats,
      validation: { boot: { ...TCG, ...boot } },
      ...(buildTimeout !== undefined && { buildTimeout }),
    },
  );
  await builder.build({ imageId: 'debian,1', repository, ...job });
}

/** Checks that the image and the machine are gone. */
async function assertNothing({ directory, events }: RepositoryFixture): Promise<void> {
  assert.deepEqual(events, []);
  assert.deepEqual(await readdir(directory), ['.nodepool-builder']);
  assert.deepEqual(await readdir(join(directory, '.nodepool-builder', 'staging')), []);
  await assertNoOrphans(directory);
}

describe('successful boot tests', () => {
  test('an image that boots as expected is published unchanged, and its console is logged without escapes', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const lines: string[] = [];
    const seen: Progress[] = [];
    await build(fixture, {
      boot: { expect: /mini: ready$/ },
      onLine: (line) => lines.push(line),
      onProgress: (progress) => seen.push(progress),
    });
    assert.deepEqual(fixture.events, ['added debian,1']);
    assert.ok((await readFile(fixture.path('debian,1.raw'))).equals(bootableDisk(GREETING)));
    const log = lines.join('\n');
    assert.match(log, /^validating the image with a boot test\n\$ qemu-system-x86_64 .*\nSeaBIOS /m);
    assert.match(log, /mini: ready/); // QEMU's own output may follow on the line
    assert.ok(!log.includes('\u001B'));
    const [first, last] = [seen[0], seen.at(-1)].map((progress) => progress?.done);
    assert.deepEqual({ first, last }, { first: 80, last: 100 });
    await assertNoOrphans(fixture.directory);
  });

  test('an image whose expected console line does not end, such as a prompt, is published', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    await build(fixture, { boot: { expect: /^mini login: $/ } });
    assert.deepEqual(fixture.events, ['added debian,1']);
  });

  for (const formats of [['qcow2'], ['vhd'], ['vmdk', 'vdi'], ['vhdx']] as const) {
    test(`an image in ${formats.join()} is booted for its test, and stays unchanged`, async (t) => {
      const fixture = await RepositoryFixture.open(t);
      await build(fixture, { formats, boot: { expect: /mini: ready/ } });
      const { path, format } = fixture.repository.get('debian,1')?.files[0] ?? assert.fail();
      const driver = format === 'vhd' ? 'vpc' : format;
      const disk = join(fixture.outside, 'disk');
      execFileSync('qemu-img', ['compare', '-f', driver, '-F', 'raw', path, disk]);
    });
  }
});

test('a boot test runs without KVM if QEMU fails with it', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository, outside } = fixture;
  const bin = join(outside, 'bin');
  const qemu = execFileSync('sh', ['-c', 'command -v qemu-system-x86_64'], { encoding: 'utf8' }).trim();
  // some hosts let KVM be opened, but QEMU then aborts
  const script = `case "$*" in *'-accel kvm'*) echo no kvm; kill -ABRT $$;; esac; exec ${qemu} "$@"`;
  await mkdir(bin);
  await writeFile(join(bin, 'qemu-system-x86_64'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const builder = new ScriptedBuilder(
    ({ outputPath }) => writeFile(outputPath('raw'), bootableDisk(GREETING)),
    {
      validation: { boot: { expect: /mini: ready/, memory: 64 } },
    },
  );
  const lines: string[] = [];
  const environment = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const onLine = (line: string): void => void lines.push(line);
  await builder.build({ imageId: 'debian-1', repository, environment, onLine });
  assert.match(lines.join('\n'), /^no kvm\nKVM cannot be used/m);
  assert.deepEqual(fixture.events, ['added debian-1']);
});

describe('images that are not published', () => {
  test('an image that does not boot in time is not published, and the error quotes the console’s last lines', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const expect = /other login:/;
    const startTimeout = AbortSignal.timeout.bind(AbortSignal);
    const over = new AbortController();
    t.mock.method(AbortSignal, 'timeout', (delay: number) =>
      delay === 3_600_000 ? over.signal : startTimeout(delay),
    );
    // The time is over once the prompt was compared, however slow the machine is.
    t.mock.method(expect, 'exec', (line: string) => {
      if (line === 'mini login: ') over.abort();
      return RegExp.prototype.exec.call(expect, line);
    });
    const failed = build(fixture, { boot: { expect, timeout: 3_600 } });
    const message =
      /no line of its console matched \/other login:\/ within 3600 s; .*mini: ready \/ mini login:; correct/;
    await assert.rejects(failed, withCode('validation-failed', message));
    await assertNothing(fixture);
  });

  test('an image whose machine ends before the expected line is not published', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const failed = build(fixture, { boot: { expect: /login/ }, text: 'no system\n', end: 'reset' });
    const message =
      /matched \/login\/ before QEMU ended with exit code 0; the last were: .*no system; correct/;
    await assert.rejects(failed, withCode('validation-failed', message));
    await assertNothing(fixture);
  });

  test('a damaged image is not published after its boot test', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const builder = new ScriptedBuilder(({ outputPath }) => writeFile(outputPath('qcow2'), 'no disk'), {
      formats: ['qcow2'],
      validation: { boot: { ...TCG, expect: /login/ } },
    });
    await assert.rejects(
      builder.build({ imageId: 'debian,1', repository: fixture.repository }),
      withCode(
        'validation-failed',
        /before QEMU ended with exit code 1; the last were: .*not in qcow2 format/,
      ),
    );
    await assertNothing(fixture);
  });

  test('an image without a QEMU to boot it is not published, and the error says what to install', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const builder = new ScriptedBuilder(({ outputPath }) => writeFile(outputPath('raw'), 'no disk'), {
      validation: { boot: { ...TCG, expect: /login/ } },
    });
    await assert.rejects(
      builder.build({
        imageId: 'debian,1',
        repository: fixture.repository,
        environment: { PATH: fixture.outside },
      }),
      withCode('command-not-found', /"qemu-system-x86_64" is not installed, or not on PATH; install it/),
    );
    await assertNothing(fixture);
  });

  test('a boot test that takes too long or is aborted ends the machine, and the image is not published', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const boot = { expect: /other login:/ };
    await assert.rejects(build(fixture, { boot, buildTimeout: 2 }), withCode('build-timeout'));
    await assertNothing(fixture);
    const abort = new AbortController();
    const onLine = (line: string): void => {
      if (line.endsWith('mini: ready')) abort.abort();
    };
    await assert.rejects(build(fixture, { boot, onLine, signal: abort.signal }), withCode('build-aborted'));
    await assertNothing(fixture);
  });

  test('an image in a format that cannot be booted is rejected before the build', async (t) => {
    const { repository } = await RepositoryFixture.open(t);
    const builder = new ScriptedBuilder(() => assert.fail('it began'), {
      formats: ['tar'],
      validation: { boot: { expect: /login/ } },
    });
    await assert.rejects(
      builder.build({ imageId: 'debian,1', repository }),
      withCode('format-unavailable', /is built as tar, which QEMU cannot boot; add raw or qcow2/),
    );
  });
});
