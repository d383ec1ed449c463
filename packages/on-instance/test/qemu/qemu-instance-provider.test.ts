import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { ImageError, type ImageErrorCode, type Probe } from '@nodepool-builder/image-builder';
import { endProcesses } from '@nodepool-builder/image-builder/internal';
import { bootableDisk } from '../../../../test/fixtures/qemu/boot-sector.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import {
  QemuInstanceProvider,
  type QemuInstanceProviderOptions,
} from '../../src/qemu/qemu-instance-provider.ts';

const REQUEST = { buildId: 'debian-1', publicKey: 'ssh-ed25519 AAAA', port: 22, minRam: 64 };

/** A directory whose path exceeds a socket's address, and contains the separators of QEMU's options. */
const DIRECTORY = join('a, b', 'c'.repeat(100), 'instances');

const never: Probe = () => Promise.reject(new Error('not yet'));

/** Creates a directory for instances, and a base image. */
interface Site {
  readonly directory: string;
  readonly image: string;
  readonly open: (options?: Partial<QemuInstanceProviderOptions>) => QemuInstanceProvider;
}

async function openSite(t: TestContext, end: Parameters<typeof bootableDisk>[1]): Promise<Site> {
  const parent = await mkdtemp(join(tmpdir(), 'qemu-'));
  undoAfter(t, () => rm(parent, { recursive: true }));
  const directory = join(parent, DIRECTORY);
  const image = join(parent, 'base: 1, 2.raw');
  await writeFile(image, bootableDisk('mini: ready\n', end));
  const open: Site['open'] = (options = {}) =>
    new QemuInstanceProvider({ name: 'local', directory, accelerator: 'tcg', ...options });
  undoAfter(t, async () => {
    for (const instance of await open().list()) await instance.destroy();
  });
  return { directory, image, open };
}

function withCode(code: ImageErrorCode, message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof ImageError && error.code === code && message.test(error.message);
}

async function makeBin(t: TestContext): Promise<string> {
  const bin = await mkdtemp(join(tmpdir(), 'bin-'));
  undoAfter(t, () => rm(bin, { recursive: true }));
  return bin;
}

function whereIs(command: string): string {
  return execFileSync('sh', ['-c', `command -v ${command}`], { encoding: 'utf8' }).trim();
}

function setPath(t: TestContext, path: string): void {
  const { PATH } = process.env;
  undoAfter(t, () => {
    process.env.PATH = PATH;
  });
  process.env.PATH = path;
}

/** Installs a QEMU that accepts KVM, and aborts when it creates the first processor, as on some virtual hosts. */
const FAILING_KVM = `#!/bin/sh
case "$*" in *kvm*) echo "failed to set MSR 0x10a"; kill -ABRT $$ ;; esac
exec`;

/** Installs a QEMU that never listens. */
const NEVER_LISTENING = `#!/bin/sh
echo started
exec sleep 600
`;

/** Installs a QEMU whose machine never starts under KVM. */
function hangingKvm(qemu: string): string {
  return `#!/bin/sh
hang=
for word; do
  shift
  case $word in *kvm*) hang=-S; word=$(echo "$word" | sed s/kvm/tcg/) ;; esac
  set -- "$@" "$word"
done
exec ${qemu} "$@" $hang
`;
}

test('a base image is described by its file’s digest', async (t) => {
  const { image, open } = await openSite(t, 'halt');
  const sha256 = createHash('sha256')
    .update(await readFile(image))
    .digest('hex');
  const provider = open();
  assert.deepEqual(await provider.describeImage(image), { digest: { sha256 }, annotations: { path: image } });
  assert.equal(await provider.describeImage(`${image}.missing`), undefined);
});

describe('an instance of a local QEMU', () => {
  test('an instance runs with TCG if QEMU fails with KVM', async (t) => {
    const { directory, image, open } = await openSite(t, 'power-off');
    const bin = await makeBin(t);
    const qemu = whereIs('qemu-system-x86_64');
    await writeFile(join(bin, 'qemu-system-x86_64'), `${FAILING_KVM} ${qemu} "$@"`, { mode: 0o755 });
    setPath(t, `${bin}:${process.env.PATH}`);
    const provider = new QemuInstanceProvider({ name: 'local', directory });
    await (await provider.launch({ ...REQUEST, image })).waitStopped();
    const failed = open({ accelerator: 'kvm' }).launch({ ...REQUEST, image });
    await assert.rejects(failed, withCode('launch-failed', /SIGABRT, saying: failed to set MSR 0x10a/));
  });

  test('an instance starts again with TCG if its kernel writes nothing under KVM', async (t) => {
    const { directory, image } = await openSite(t, 'halt');
    const bin = await makeBin(t);
    const qemu = whereIs('qemu-system-x86_64');
    await writeFile(join(bin, 'qemu-system-x86_64'), hangingKvm(qemu), { mode: 0o755 });
    setPath(t, `${bin}:${process.env.PATH}`);
    const kernel = join(import.meta.dirname, '../../../../.cache/linux/vmlinuz');
    const logger = new RecordingLogger();
    const provider = new QemuInstanceProvider({
      name: 'local',
      directory,
      'direct-boot': { kernel, 'command-line': 'console=ttyS0' },
      consoleTimeout: 500,
      logger,
    });
    const instance = await provider.launch({ ...REQUEST, image, minRam: 128 });
    await waitUntil('its console', async () => (await instance.consoleLog()).includes('Linux version'));
    assert.match(
      logger.lines.join('\n'),
      /^warn the machine of build debian-1 wrote nothing .* restarting it without KVM/,
    );
    assert.equal(logger.lines.length, 1);
  });

  test('an instance that powers off unobserved can be captured, and its base image stays unchanged', async (t) => {
    const { image, open } = await openSite(t, 'power-off');
    const launched = await open().launch({ ...REQUEST, image });
    await waitUntil('the end', async () => (await launched.state()) === 'stopped');
    const [instance = assert.fail()] = await open().list();
    const captured = await instance.capture({ imageId: 'debian-1' });
    const path = join(image, '../captured.raw');
    await captured.save('raw', path);
    const [before, after] = [await readFile(image), await readFile(path)];
    assert.ok(before.equals(bootableDisk('mini: ready\n', 'power-off')));
    // It has copied its first sector to its second.
    assert.deepEqual(after.subarray(512, 1024), before.subarray(0, 512));
    assert.deepEqual(after.subarray(0, 512), before.subarray(0, 512));
    assert.match(await instance.consoleLog(), /mini: ready/);
    assert.equal(await instance.state(), 'stopped');
    await assert.rejects(
      instance.screenshot(path),
      withCode('instance-failed', /has no display: it is powered/),
    );
  });

  test('a QEMU instance takes a screenshot as a PNG file', async (t) => {
    const { image, open } = await openSite(t, 'halt');
    const instance = await open().launch({ ...REQUEST, image });
    const path = join(image, '../display.png');
    await instance.screenshot(path);
    assert.equal((await readFile(path)).subarray(1, 4).toString(), 'PNG');
  });

  test('an instance responds to many queries at the same time, although its QEMU serves one client at a time', async (t) => {
    const { image, open } = await openSite(t, 'halt');
    await open().launch({ ...REQUEST, image });
    const query = async (): Promise<string | undefined> => (await open().list())[0]?.state();
    const states = await Promise.all(Array.from({ length: 10 }, query));
    assert.deepEqual([...new Set(states)], ['running']);
  });

  test('an instance fails if its QEMU is killed, and waiting callers get the error', async (t) => {
    const { directory, image, open } = await openSite(t, 'halt');
    const instance = await open().launch({ ...REQUEST, image });
    const told = Promise.all([
      assert.rejects(instance.waitStopped(), withCode('instance-failed', /did not power off: its QEMU/)),
      assert.rejects(
        instance.waitReachable(never),
        withCode('instance-failed', /cannot be reached: its QEMU/),
      ),
    ]);
    assert.ok(await endProcesses({ roots: [directory], groups: [] }));
    await told;
    assert.equal(await instance.state(), 'failed');
    await assert.rejects(instance.capture({ imageId: 'debian-1' }), withCode('instance-failed', /captured/));
  });

  test('an instance outlives the process that launched it, and the next process destroys it', async (t) => {
    const { directory, image, open } = await openSite(t, 'halt');
    const script = join(import.meta.dirname, 'launch-and-wait.ts');
    const child = spawn(process.execPath, [...process.execArgv, script, directory, image], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    const { pid = assert.fail() } = child;
    undoAfter(t, () => child.kill('SIGKILL'));
    const [id] = (await once(child.stdout, 'data')) as [Buffer];
    process.kill(-pid, 'SIGKILL'); // the whole group, as Ctrl-C does
    await once(child, 'exit');
    await mkdir(join(directory, '.half-made'));
    const [instance = assert.fail()] = await open().list();
    assert.equal(instance.id, id.toString().trim());
    assert.equal(await instance.state(), 'running');
    await instance.destroy();
    assert.deepEqual(await readdir(directory), []);
  });
});

describe('launches that fail', () => {
  async function failedLaunch(
    t: TestContext,
    options: Partial<QemuInstanceProviderOptions>,
  ): Promise<unknown> {
    const { directory, image, open } = await openSite(t, 'halt');
    const failure = await open(options)
      .launch({ ...REQUEST, image })
      .catch((error: unknown) => error);
    assert.deepEqual(await readdir(directory), []);
    return failure;
  }

  test('a failed launch leaves nothing and gives the reason if QEMU does not start the machine', async (t) => {
    const directBoot = { kernel: '/absent/vmlinuz', 'command-line': '' };
    const error = await failedLaunch(t, { 'direct-boot': directBoot });
    assert.ok(
      withCode(
        'launch-failed',
        /build debian-1: it ended with exit code 1, saying: .*\/absent\/vmlinuz/,
      )(error),
    );
  });

  test('a launch that is aborted while QEMU starts leaves nothing', async (t) => {
    const { directory, image, open } = await openSite(t, 'halt');
    const bin = await makeBin(t);
    await writeFile(join(bin, 'qemu-system-x86_64'), NEVER_LISTENING, { mode: 0o755 });
    setPath(t, `${bin}:${process.env.PATH}`);
    const abort = new AbortController();
    const reason = new Error('enough');
    const provider = open();
    const launched = assert.rejects(provider.launch({ ...REQUEST, image }, { signal: abort.signal }), reason);
    await waitUntil('QEMU to start', async () => {
      const [instance] = await provider.list();
      return (
        instance !== undefined &&
        (await readFile(join(directory, instance.id, 'qemu.log'), 'utf8').catch(() => '')) === 'started\n'
      );
    });
    abort.abort(reason);
    await launched;
    assert.deepEqual(await readdir(directory), []);
  });

  test('a failed launch leaves nothing and gives the reason if QEMU is not installed', async (t) => {
    const bin = await makeBin(t);
    await symlink(whereIs('qemu-img'), join(bin, 'qemu-img'));
    setPath(t, bin);
    assert.ok(
      withCode('command-not-found', /"qemu-system-x86_64" is not installed/)(await failedLaunch(t, {})),
    );
  });

  test('a launch fails if QEMU cannot read the base image’s format', async (t) => {
    const { image, open } = await openSite(t, 'halt');
    for (const base of [{ image: `${image}.img` }, { image, format: 'tar' as const }]) {
      await assert.rejects(
        open().launch({ ...REQUEST, ...base }),
        withCode('format-unknown', /format that QEMU/),
      );
    }
  });

  test('a launch fails if the base image refers to another file of the host', async (t) => {
    const { directory, image, open } = await openSite(t, 'halt');
    const over = `${image}.qcow2`;
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', image, '-F', 'raw', over]);
    const launched = open().launch({ ...REQUEST, image: over });
    await assert.rejects(
      launched,
      withCode('image-not-self-contained', /names another file, ".*base: 1, 2\.raw"/),
    );
    assert.deepEqual(await readdir(directory), []);
  });

  test('a launch fails if the base image is damaged', async (t) => {
    const { directory, image, open } = await openSite(t, 'halt');
    const launched = open().launch({ ...REQUEST, image, format: 'qcow2' });
    await assert.rejects(launched, withCode('launch-failed', /not in qcow2 format.*; repair the base image/));
    assert.deepEqual(await readdir(directory), []);
  });
});
