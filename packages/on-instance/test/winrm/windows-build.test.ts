import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { Image } from '@nodepool-builder/image-builder';
import { NO_SERVICES } from '../../../../test/fixtures/builder-services.ts';
import { RepositoryFixture } from '../../../../test/fixtures/repository-fixture.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { OnInstanceBuilder } from '../../src/index.ts';
import { type RunScript, WindowsInstance } from './windows-instance.ts';

async function build(
  t: TestContext,
  runScript: RunScript,
): Promise<{ building: Promise<Image>; lines: string[]; instance: WindowsInstance }> {
  const { repository, outside } = await RepositoryFixture.open(t);
  const passwordFile = join(outside, 'password');
  await writeFile(passwordFile, 'secret\n');
  const instance = new WindowsInstance(runScript);
  undoAfter(t, () => instance.destroy());
  const lines: string[] = [];
  const onInstance = {
    provider: 'windows',
    'base-image': 'windows-server',
    username: 'Administrator',
    winrm: { port: 5986, 'password-file': passwordFile },
    shell: 'powershell',
    steps: ['greet'],
    sysprep: true,
    'boot-timeout': 120,
    'stop-timeout': 120,
    'after-restart': 'destroy',
  } as const;
  const builder = new OnInstanceBuilder({ name: 'windows', formats: ['raw'] }, onInstance, {
    ...NO_SERVICES,
    instanceProvider: () => instance,
  });
  const onLine = (line: string): void => void lines.push(line);
  return { building: builder.build({ imageId: 'windows-1', repository, onLine }), lines, instance };
}

describe('a build over WinRM', () => {
  it('a build over WinRM runs the steps and sysprep, and treats the lost connection as the power-off', async (t) => {
    const ran: string[] = [];
    const { building, lines, instance } = await build(t, async (name, script, { write }, machine) => {
      ran.push(name.replace(/^.*\//, ''));
      if (/^greet$/m.test(script)) await write('stdout', 'Grüße\r\n');
      if (script.includes('sysprep.exe')) await machine.powerOff();
      return 0;
    });
    const image = await building;
    equal(image.files.length, 1);
    ok(lines.includes('Grüße'));
    ok(
      lines.some((line) => /^logged in; the certificate is SHA256:\S+, announced by the console$/.test(line)),
    );
    deepEqual(ran, ['prepare.ps1', 'step-0.ps1', 'clean.ps1', 'power-off.ps1']);
    deepEqual(await instance.list(), []);
  });

  it('a build over WinRM fails with sysprep’s output if sysprep fails', async (t) => {
    const { building, instance } = await build(t, async (_name, script, { write }) => {
      if (!script.includes('sysprep.exe')) return 0;
      await write('stdout', 'a package was not provisioned for all users\r\n');
      return 31;
    });
    await rejects(building, {
      code: 'command-failed',
      message: /sysprep ended with exit code 31, saying: a package was not provisioned for all users/,
    });
    deepEqual(await instance.list(), []);
  });
});
