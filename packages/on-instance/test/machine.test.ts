import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { holdTimeout } from '../../../test/fixtures/held-timeout.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { Machine, SCRIPT_LANGUAGES } from '../src/machine.ts';
import { HostKey } from '../src/ssh/host-key.ts';
import { generateKeyPair } from '../src/ssh/identity.ts';
import { sshLogin } from '../src/ssh/ssh-login.ts';
import { OnInstanceSite, onInstanceOf } from './on-instance-site.ts';
import type { SshdInstance, SshdInstancesOptions } from './sshd-instances.ts';

interface Launched {
  readonly instance: SshdInstance;
  readonly logIn: () => Promise<Machine>;
  /** Resolves when a login is rejected. */
  readonly refused: Promise<void>;
  readonly lines: string[];
}

/** Timeout in seconds. Tests that wait for it shorten it by `holdTimeout`. */
const BOOT_TIMEOUT = 120;

/** Launches a machine without logging in. */
async function launch(
  t: TestContext,
  options: SshdInstancesOptions = {},
  { isKnown = true }: { isKnown?: boolean } = {},
): Promise<Launched> {
  const site = await OnInstanceSite.start(t, options);
  const { privateKey, publicKey } = generateKeyPair('test');
  const request = { buildId: '1', image: site.base, publicKey: isKnown ? publicKey : 'none', port: 22 };
  const instance = await site.provider.launch(request);
  const hostKey = new HostKey();
  const lines: string[] = [];
  const buildLog = {
    name: 'its log',
    path: 'log',
    mask: (text: string) => text,
    write: async (line: string) => void lines.push(line),
  };
  const login = sshLogin('root', { privateKey, keyFile: 'key' }, hostKey);
  const refused = Promise.withResolvers<void>();
  const connect: typeof login.connect = async (...args) => {
    try {
      return await login.connect(...args);
    } catch (error) {
      setImmediate(refused.resolve); // after the machine has seen the error
      throw error;
    }
  };
  const logIn = async (): Promise<Machine> => {
    const machine = await Machine.logIn({
      instance,
      login: { ...login, connect },
      settings: { ...onInstanceOf(site.base), 'boot-timeout': BOOT_TIMEOUT },
      context: { signal: t.signal, buildLog },
    });
    undoAfter(t, () => machine.close());
    return machine;
  };
  return { instance, logIn, refused: refused.promise, lines };
}

/** Launches a machine and logs in. */
async function start(t: TestContext): Promise<Launched & { readonly machine: Machine }> {
  const launched = await launch(t);
  return { ...launched, machine: await launched.logIn() };
}

test('a host key that the console announces is trusted', async (t) => {
  const { logIn, lines } = await launch(t, { announcesHostKey: true });
  await logIn();
  assert.match(lines[0] ?? '', /^logged in; the host key is SHA256:\S+, announced by the console$/);
});

test('a host key that the console does not announce is rejected before the login', async (t) => {
  const other = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKAWEtnthEZEIaDPLHV3UzLWhaDiSMlKSKDBwMtI29BX host';
  const console = `-----BEGIN SSH HOST KEY KEYS-----\r\n${other}\r\n-----END SSH HOST KEY KEYS-----\r\n`;
  const { logIn, refused, lines } = await launch(t, { console });
  const passBootTimeout = holdTimeout(t, BOOT_TIMEOUT);
  const message = /host key SHA256:\S+, but its console announces SHA256:/;
  const failed = assert.rejects(logIn(), withCode('instance-failed', message));
  await refused;
  passBootTimeout();
  await failed;
  assert.deepEqual(lines, []);
});

test('a host key that no console announces is trusted at the first login', async (t) => {
  const { lines } = await start(t);
  assert.match(lines[0] ?? '', /, trusted at the first login$/);
});

test('a machine that accepts only another key fails the build', async (t) => {
  const { logIn, refused } = await launch(t, {}, { isKnown: false });
  const passBootTimeout = holdTimeout(t, BOOT_TIMEOUT);
  const message = /root cannot log in at 127\.0\.0\.1:\d+: /;
  const failed = assert.rejects(logIn(), withCode('instance-failed', message));
  await refused;
  passBootTimeout();
  await failed;
});

test('a build step ends at its first failing command', async (t) => {
  const { machine, lines } = await start(t);
  const script = SCRIPT_LANGUAGES.posix.step('echo reached; false; echo not reached', {});
  await machine.run('the preparation', 'prepare', SCRIPT_LANGUAGES.posix.prepare, {
    asAdministrator: true,
  });
  const failed = withCode('command-failed', /^the step ended with exit code 1, saying: reached$/);
  await assert.rejects(machine.run('the step', 'step', script), failed);
  assert.equal(lines.at(-1), 'reached');
});

const GREETING = 'echo hello';

test('a connection that is lost between two scripts causes an error', async (t) => {
  const { machine, instance } = await start(t);
  await instance.sshd.kill();
  await waitUntil('the connection to be lost', () => machine.isClosed);
  await assert.rejects(
    machine.run('the greeting', 'greeting', GREETING),
    withCode('instance-failed', /the connection is lost.*; check its console log$/),
  );
});

for (const sftp of [true, false]) {
  test(`a file that cannot be read here or written on the machine causes an error, ${sftp ? 'with' : 'without'} SFTP`, async (t) => {
    const { logIn, instance } = await launch(t, { sftp });
    const machine = await logIn();
    const files = [{ path: 'file', content: { file: '/nonexistent' } }];
    await assert.rejects(
      machine.run('the greeting', 'greeting', GREETING, { files }),
      withCode('directory-not-usable', /^reading "\/nonexistent" failed/),
    );
    await rm(join(instance.disk, 'root/.nodepool-builder'), { recursive: true, force: true });
    await writeFile(join(instance.disk, 'root/.nodepool-builder'), 'a file');
    await assert.rejects(
      machine.run('the greeting', 'greeting', GREETING),
      withCode('instance-failed', /cannot write "\.nodepool-builder\/greeting" there/),
    );
  });
}
