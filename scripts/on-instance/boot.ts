import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { QemuInstanceProvider } from '@nodepool-builder/on-instance';
import { probeSsh } from '../../packages/on-instance/src/ssh/ssh-login.ts';
import { makeSshLogin } from '../../test/fixtures/qemu/ssh-login.ts';

/** Image to boot, and its boot options. */
export interface BootOptions {
  readonly image: string;
  readonly kernel: string;
  readonly initrd: string;
  /** Directory for the machine's temporary files. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** Boots an image under QEMU, runs a command line there as root over SSH, and returns its output. */
export async function runInImage(
  { image, kernel, initrd, directory, signal }: BootOptions,
  command: string,
): Promise<string> {
  const place = await mkdtemp(join(directory, 'boot-'));
  const provider = new QemuInstanceProvider({
    name: 'shown',
    directory: join(place, 'instances'),
    'direct-boot': { kernel, initrd, 'command-line': 'root=/dev/vda console=ttyS0 quiet' },
  });
  try {
    const { publicKey, run } = await makeSshLogin(place);
    const instance = await provider.launch(
      { buildId: 'shown', image, publicKey, port: 22, minRam: 768 },
      { signal },
    );
    const address = await instance.waitReachable(probeSsh, { signal });
    return await run(address, command);
  } finally {
    for (const instance of await provider.list()) await instance.destroy();
    await rm(place, { recursive: true, force: true });
  }
}
