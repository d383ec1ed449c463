import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Describes the Debian version and the kernel in a file system image.
 *
 * @throws Error if one of them is missing.
 */
export async function describeDebian(image: string): Promise<string> {
  const version = await inFileSystem(image, 'cat /etc/debian_version');
  if (!/^\S+$/.test(version)) throw new Error(`${image} has no /etc/debian_version`);
  return `Debian ${version} with ${await inBoot(image, 'vmlinuz')}`;
}

/**
 * Copies kernel and initial RAM disk from a file system image, as `vmlinuz` and `initrd`.
 *
 * @throws Error if one of them is missing.
 */
export async function copyKernel(image: string, directory: string): Promise<void> {
  for (const [prefix, name] of [
    ['vmlinuz', 'vmlinuz'],
    ['initrd.img', 'initrd'],
  ] as const) {
    await inFileSystem(image, `dump /boot/${await inBoot(image, prefix)} ${join(directory, name)}`);
  }
}

/** Returns whether a file system image contains a file. */
export async function hasFile(image: string, path: string): Promise<boolean> {
  return /^Inode: /m.test(await inFileSystem(image, `stat ${path}`));
}

async function inBoot(image: string, prefix: string): Promise<string> {
  const files = (await inFileSystem(image, 'ls -p /boot')).split('/');
  const found = files.find((file) => file.startsWith(`${prefix}-`));
  if (found === undefined) throw new Error(`${image} has no ${prefix} in /boot`);
  return found;
}

/** Returns the output of a debugfs command. debugfs reads a file system without mounting it. */
async function inFileSystem(image: string, request: string): Promise<string> {
  const { stdout } = await promisify(execFile)('/sbin/debugfs', ['-R', request, image]);
  return stdout.trim();
}
