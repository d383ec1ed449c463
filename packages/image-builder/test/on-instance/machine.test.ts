import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { makeHostKey } from '../../../../test/fixtures/sshd.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { HostKey } from '../../src/on-instance/host-key.ts';
import { generateKeyPair } from '../../src/on-instance/identity.ts';
import { Machine } from '../../src/on-instance/machine.ts';
import { SCRIPT_LANGUAGES } from '../../src/on-instance/script-language.ts';
import { sshLogin } from '../../src/on-instance/ssh-login.ts';
import { withCode } from '../with-code.ts';
import { OnInstanceSite, onInstanceOf } from './on-instance-site.ts';
import type { SshdInstance } from './sshd-instances.ts';

/** A machine that somebody is logged in to. */
async function start(t: TestContext): Promise<{ machine: Machine; instance: SshdInstance; lines: string[] }> {
  const site = await OnInstanceSite.start(t);
  const { privateKey, publicKey } = generateKeyPair('test');
  const instance = await site.provider.launch({ buildId: '1', image: site.base, publicKey, port: 22 });
  const hostKey = new HostKey();
  const lines: string[] = [];
  const machine = new Machine({
    instance,
    login: sshLogin({ username: 'root', privateKey, keyFile: 'key', hostKey }),
    hostKey,
    language: SCRIPT_LANGUAGES.posix,
    settings: { ...onInstanceOf(site.base), bootTimeout: 10 },
    signal: t.signal,
    log: (line) => void lines.push(line),
  });
  t.after(() => machine.close());
  await machine.logIn();
  return { machine, instance, lines };
}

const GREETING = { text: 'echo hello', asAdministrator: false };

test('a machine that was restarted is logged in to again', async (t) => {
  const { machine, instance, lines } = await start(t);
  await instance.restart();
  await waitUntil('the connection to be lost', () => !machine.isLoggedIn);
  assert.deepEqual(await machine.run('greeting', GREETING), { exitCode: 0 });
  assert.equal(lines.at(-1), 'hello');
});

test('a machine that has another host key then is refused, and nothing is sent there', async (t) => {
  const { machine, instance } = await start(t);
  await instance.restart(() => makeHostKey(instance.disk));
  await waitUntil('the connection to be lost', () => !machine.isLoggedIn);
  await assert.rejects(machine.run('greeting', GREETING), withCode('host-key-changed', /instead of SHA256:/));
});

test('a file that cannot be written there is told', async (t) => {
  const { machine, instance } = await start(t);
  await rm(join(instance.disk, 'root/.nodepool-builder'), { recursive: true, force: true });
  await writeFile(join(instance.disk, 'root/.nodepool-builder'), 'a file');
  await assert.rejects(
    machine.run('greeting', GREETING),
    withCode('instance-failed', /"\.nodepool-builder\/greeting" could not be written there/),
  );
});
