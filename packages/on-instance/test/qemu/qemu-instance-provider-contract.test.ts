// Only in test:all: it boots many machines.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { instanceProviderContract } from '@nodepool-builder/image-builder/testing';
import { type MiniLinux, makeMiniLinux } from '../../../../test/fixtures/qemu/mini-linux.ts';
import { makeSshLogin, type SshLogin } from '../../../../test/fixtures/qemu/ssh-login.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { QemuInstanceProvider } from '../../src/qemu/qemu-instance-provider.ts';
import { probeSsh } from '../../src/ssh/ssh-login.ts';

let directory: string;
let linux: MiniLinux;
let login: SshLogin;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mini-linux-'));
  [linux, login] = await Promise.all([makeMiniLinux(directory), makeSshLogin(directory)]);
});

after(() => rm(directory, { recursive: true }));

instanceProviderContract('QemuInstanceProvider', async (t) => {
  const { image, directBoot, memory } = linux;
  const instances = await mkdtemp(join(tmpdir(), 'instances-'));
  undoAfter(t, () => rm(instances, { recursive: true }));
  const open = (): QemuInstanceProvider =>
    new QemuInstanceProvider({
      name: 'local',
      directory: instances,
      'direct-boot': directBoot,
      accelerator: 'tcg', // a test must not depend on the host's virtualisation
    });
  undoAfter(t, async () => {
    for (const instance of await open().list()) await instance.destroy();
  });
  return {
    open,
    request: { image, publicKey: login.publicKey, port: 22, minRam: memory },
    probe: probeSsh,
    run: login.run,
  };
});
