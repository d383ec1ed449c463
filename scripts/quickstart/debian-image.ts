import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * The version of Debian and the kernel in an image of a file system, for people.
 *
 * @throws Error if one of them is missing.
 */
export async function describeDebian(image: string): Promise<string> {
  const version = await inFileSystem(image, 'cat /etc/debian_version');
  const kernel = /\/(vmlinuz-[^/]+)\//.exec(await inFileSystem(image, 'ls -p /boot'))?.[1];
  if (!/^\S+$/.test(version)) throw new Error(`${image} has no /etc/debian_version`);
  if (kernel === undefined) throw new Error(`${image} has no kernel in /boot`);
  return `Debian ${version} with ${kernel}`;
}

/** The output of a command of debugfs, which reads a file system without mounting it. */
async function inFileSystem(image: string, request: string): Promise<string> {
  const { stdout } = await promisify(execFile)('/sbin/debugfs', ['-R', request, image]);
  return stdout.trim();
}
