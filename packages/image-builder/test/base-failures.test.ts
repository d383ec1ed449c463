import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { holdTimeout } from '../../../test/fixtures/held-timeout.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { processesWith } from '../../../test/fixtures/running-process.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import type { FullBuildContext } from '../src/context.ts';
import { type DiskImage, ImageError, type ImageErrorCode } from '../src/index.ts';
import { makeImage, ScriptedBuilder } from './scripted-builder.ts';

/** Seconds that a test's process sleeps, which identify the process. */
function uniqueSleep(): string {
  return `600.${randomInt(2 ** 40)}`;
}

/** Script that starts a process in the group and one that leaves the group, and waits. */
class Hanging {
  readonly #started = Promise.withResolvers<void>();
  readonly #time = uniqueSleep();

  readonly script = async ({ run }: FullBuildContext): Promise<void> => {
    await run('sh', ['-c', `sleep ${this.#time} & setsid sleep ${this.#time} & echo started; wait`], {
      onLine: () => this.#started.resolve(),
    });
  };

  get started(): Promise<void> {
    return this.#started.promise;
  }

  async assertGone(): Promise<void> {
    await this.started;
    assert.deepEqual(await processesWith(this.#time), []);
  }
}

/** Checks that nothing is left of a failed build, and that the next one succeeds. */
async function assertClean({ directory, repository, events }: RepositoryFixture): Promise<void> {
  assert.deepEqual(await readdir(directory), ['.nodepool-builder']);
  assert.deepEqual(await readdir(join(directory, '.nodepool-builder', 'staging')), []);
  assert.deepEqual(events, []);
  await new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository });
}

interface Failure {
  readonly what: string;
  readonly script: (context: FullBuildContext) => Promise<void>;
  readonly code: ImageErrorCode;
  readonly message: RegExp;
  readonly diskimage?: Partial<DiskImage>;
}

const FAILURES: readonly Failure[] = [
  {
    what: 'a missing command',
    script: ({ run }) => run('no-such-command', ['--now']),
    code: 'command-not-found',
    message: /"no-such-command" is not installed/,
  },
  {
    what: 'a command that fails',
    script: ({ run }) => run('sh', ['-c', 'echo reason; exit 42']),
    code: 'command-failed',
    message: /"sh" ended with exit code 42, saying: reason; see .*debian-1\.log/,
  },
  {
    what: 'a command that a signal ends',
    script: ({ run }) => run('sh', ['-c', 'kill -SEGV $$']),
    code: 'command-failed',
    message: /"sh" ended with SIGSEGV; see/,
  },
  {
    what: 'an error that quotes a variable without a public value',
    script: () => Promise.reject(new ImageError('login-refused', 'the login with correct-horse was refused')),
    code: 'login-refused',
    message: /the login with \*\*\* was refused$/m,
    diskimage: { envVars: { NPM_AUTH: 'correct-horse' } },
  },
  {
    what: 'no image',
    script: () => Promise.resolve(),
    code: 'image-missing',
    message: /debian-1\.raw was not made; see the build's log/,
  },
  {
    what: 'one image of two',
    script: async ({ outputPath }) => writeFile(outputPath('raw'), 'content'),
    diskimage: { formats: ['raw', 'qcow2'] },
    code: 'image-missing',
    message: /debian-1\.qcow2 was not made/,
  },
  {
    what: 'an empty image',
    script: async ({ outputPath }) => writeFile(outputPath('raw'), ''),
    code: 'image-missing',
    message: /debian-1\.raw is empty/,
  },
  {
    what: 'an image over a backing file',
    script: async ({ outputPath, run }) => {
      await run('qemu-img', ['create', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', outputPath('raw')]);
    },
    code: 'image-not-self-contained',
    message: /debian-1\.raw" names another file, "\/etc\/passwd"/,
  },
  {
    what: 'a link in place of an image',
    script: async ({ outputPath }) => symlink('/etc/passwd', outputPath('raw')),
    code: 'image-missing',
    message: /debian-1\.raw is not a regular file/,
  },
];

for (const { what, script, code, message, diskimage } of FAILURES) {
  test(`a build with ${what} fails and leaves nothing but its log`, async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const { repository } = fixture;
    const build = new ScriptedBuilder(script, diskimage).build({ imageId: 'debian-1', repository });
    await assert.rejects(build, withCode(code, message));
    const log = await readFile(join(repository.logDirectory, 'debian-1.log'), 'utf8');
    assert.match(log, message, 'the log has the reason');
    await assertClean(fixture);
  });
}

test('a build fails with its builder’s error', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const fault = new TypeError('an internal error');
  const builder = new ScriptedBuilder(() => Promise.reject(fault));
  await assert.rejects(builder.build({ imageId: 'debian-1', repository: fixture.repository }), fault);
  await assertClean(fixture);
});

test('a build that hangs past its time limit ends with all its processes', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  const hanging = new Hanging();
  void hanging.started.then(holdTimeout(t, 3600));
  const build = new ScriptedBuilder(hanging.script, { buildTimeout: 3_600 }).build({
    imageId: 'debian-1',
    repository,
  });
  await assert.rejects(build, withCode('build-timeout', /took longer than 3600 s; .*raise build-timeout/));
  await hanging.assertGone();
  await assertClean(fixture);
});

test('a build that is aborted ends with all its processes', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const hanging = new Hanging();
  const abort = new AbortController();
  const reason = new Error('nothing needs it');
  const build = new ScriptedBuilder(hanging.script).build({
    imageId: 'debian-1',
    repository: fixture.repository,
    signal: abort.signal,
  });
  await hanging.started;
  abort.abort(reason);
  await assert.rejects(
    build,
    withCode('build-aborted', /the build of image debian-1 was aborted: nothing needs it$/),
  );
  await hanging.assertGone();
  await assertClean(fixture);
});

test('a repository that is closed ends its builds with all their processes', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const hanging = new Hanging();
  const build = new ScriptedBuilder(hanging.script).build({
    imageId: 'debian-1',
    repository: fixture.repository,
  });
  await hanging.started;
  await Promise.all([assert.rejects(build, withCode('build-aborted', /being closed/)), fixture.close()]);
  await hanging.assertGone();
  await fixture.open();
  await assertClean(fixture);
});

test('processes that a finished build leaves running are ended', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const time = uniqueSleep();
  let started = 0;
  // Ends once the process leads its own session: in the command’s session it would end with the command.
  const script = `setsid sleep ${time} >&- 2>&- & until [ "$(cut -d ' ' -f 6 /proc/$!/stat)" = $! ]; do sleep 0.01; done`;
  const builder = new ScriptedBuilder(async (context) => {
    await context.run('sh', ['-c', script]);
    started = (await processesWith(time)).length;
    await makeImage(context);
  });
  await builder.build({ imageId: 'debian-1', repository });
  assert.equal(started, 1);
  assert.deepEqual(await processesWith(time), []);
});

test('a build by a user other than root has no namespaces, and its log says so', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const { geteuid } = process;
  assert.ok(geteuid);
  process.geteuid = () => 1000;
  t.after(() => {
    process.geteuid = geteuid;
  });
  await new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository });
  const log = await readFile(join(repository.logDirectory, 'debian-1.log'), 'utf8');
  assert.match(
    log,
    /^# the build has no namespaces of its own \(only root can create namespaces\): .* outlives it/m,
  );
});

test('a build rejects even if its builder ignores the signal', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const begun = Promise.withResolvers<void>();
  const builder = new ScriptedBuilder(
    () => {
      begun.resolve();
      return new Promise(() => undefined);
    },
    { buildTimeout: 60 },
  );
  const build = builder.build({ imageId: 'debian-1', repository });
  await begun.promise;
  t.mock.timers.tick(60_000);
  t.mock.timers.tick(15_000);
  await assert.rejects(build, withCode('build-timeout'));
  t.mock.timers.reset();
  await assertClean(fixture);
});

/** Creates a builder with a timeout of a minute, which creates its image after `end`. */
function finishAfter(end: () => void): ScriptedBuilder {
  return new ScriptedBuilder(
    async ({ outputPath }) => {
      end();
      await writeFile(outputPath('raw'), 'content');
    },
    { buildTimeout: 60 },
  );
}

test('an image that is finished after the abort or the time limit is not offered', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const abort = new AbortController();
  const job = { imageId: 'debian-1', repository };
  const aborted = finishAfter(() => abort.abort()).build({ ...job, signal: abort.signal });
  await assert.rejects(aborted, withCode('build-aborted'));
  const late = finishAfter(() => t.mock.timers.tick(60_000)).build(job);
  await assert.rejects(late, withCode('build-timeout'));
  t.mock.timers.reset();
  await assertClean(fixture);
});

const WRITERS: Readonly<Record<string, (context: FullBuildContext) => Promise<void>>> = {
  'a command': ({ run, outputPath }) =>
    run('dd', ['if=/dev/zero', `of=${outputPath('raw')}`, 'bs=1M', 'count=8']),
  'the builder itself': ({ outputPath }) => writeFile(outputPath('raw'), Buffer.alloc(8 * 1024 * 1024)),
};

for (const [who, script] of Object.entries(WRITERS)) {
  test(`a disk that ${who} fills is reported as full, and its space is freed`, async (t) => {
    const fixture = await RepositoryFixture.create(t);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', fixture.directory]);
    const repository = await fixture.open();
    const build = new ScriptedBuilder(script).build({ imageId: 'debian-1', repository });
    await assert.rejects(build, withCode('disk-full', /free space/));
    await assertClean(fixture);
  });
}

test('a command that fails on a full disk without naming it fails with the free space and the remedy', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', fixture.directory]);
  const repository = await fixture.open();
  const commands = [
    'dd if=/dev/zero of=filler bs=64k 2>&-',
    'echo "E: Couldn\'t download packages: mawk mount"',
    'sleep 0.5; rm filler; exit 1', // like the caller of debootstrap
  ];
  const build = new ScriptedBuilder(({ run }) => run('sh', ['-c', commands.join('; ')])).build({
    imageId: 'debian-1',
    repository,
  });
  const message =
    /download packages: mawk mount: ".*" has .* of 4\.0 MiB left; free space, or lower build-cache-size/;
  await assert.rejects(build, withCode('disk-full', message));
  await assertClean(fixture);
});

test('a read-only images directory is reported, and used again once it is writable', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', fixture.directory]);
  const repository = await fixture.open();
  execFileSync('mount', ['-o', 'remount,ro', fixture.directory]);
  const build = new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository });
  await assert.rejects(build, withCode('directory-not-usable', /building image debian-1 failed: EROFS/));
  execFileSync('mount', ['-o', 'remount,rw', fixture.directory]);
  await assertClean(fixture);
});

test('a mount that a builder leaves is undone before its files are removed', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  await mkdir(join(fixture.outside, 'dev'));
  await writeFile(join(fixture.outside, 'dev', 'null'), 'the host’s own');
  const builder = new ScriptedBuilder(async ({ run, directory }) => {
    await mkdir(join(directory, 'chroot', 'dev'), { recursive: true });
    await run('mount', ['--bind', join(fixture.outside, 'dev'), join(directory, 'chroot', 'dev')]);
    throw new Error('fault');
  });
  await assert.rejects(builder.build({ imageId: 'debian-1', repository: fixture.repository }), /fault/);
  assert.deepEqual(await readdir(join(fixture.outside, 'dev')), ['null']);
  await rm(join(fixture.outside, 'dev'), { recursive: true });
  await assertClean(fixture);
});

test('a build that is cancelled while its files are read for their checksums leaves nothing', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const abort = new AbortController();
  const seen: number[] = [];
  const builder = new ScriptedBuilder(({ outputPath, run }) =>
    run('truncate', ['-s', '64M', outputPath('raw')]),
  );
  const build = builder.build({
    imageId: 'debian-1',
    repository: fixture.repository,
    signal: abort.signal,
    onProgress: ({ done }) => {
      seen.push(done);
      if (done >= 90) abort.abort();
    },
  });
  await assert.rejects(build, withCode('build-aborted'));
  assert.deepEqual(seen, [90], 'it was not cancelled between the first and the last byte');
  await assertClean(fixture);
});
