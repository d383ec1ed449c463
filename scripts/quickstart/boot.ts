import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { copyKernel } from './debian-image.ts';

/** The user of the element console-login. */
export const LOGIN = { user: 'debian', password: 'quickstart' };

/** Time limit for a boot without KVM, in milliseconds. */
const TIMEOUT = 300_000;

const PROGRAM = `#!/bin/sh
# Boots the Debian image beside this file under QEMU, with its console on this terminal. The image stays as it is.
# usage: boot-debian [kvm|tcg]    default: KVM if QEMU can use it; tcg is slower, and works everywhere
set -eu
cd "$(dirname "$0")"
command -v qemu-system-x86_64 >/dev/null || { echo 'install QEMU first: apt-get install qemu-system-x86' >&2; exit 1; }
exec qemu-system-x86_64 -machine "accel=\${1:-kvm:tcg}" -m 1024 -smp 2 -nographic -no-reboot -snapshot \\
  -drive file=debian.qcow2,if=virtio,format=qcow2 -kernel vmlinuz -initrd initrd \\
  -append 'root=/dev/vda console=ttyS0'
`;

/**
 * Writes the program `boot-debian` next to the disk image `debian.qcow2`, together with the image's kernel.
 *
 * @param raw - the same image as a raw file
 * @returns the path of the program
 */
export async function writeBootProgram(directory: string, raw: string): Promise<string> {
  await copyKernel(raw, directory);
  const program = join(directory, 'boot-debian');
  await writeFile(program, PROGRAM);
  await chmod(program, 0o755);
  return program;
}

/**
 * Boots the image, logs in on its console, and runs a command there.
 *
 * @param program - the path of `boot-debian`
 * @param onLine - receives each line of the console, and of QEMU's errors
 * @returns the output of the command
 * @throws Error if that takes more than five minutes, or QEMU ends
 */
export async function logIn(
  program: string,
  command: string,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<string> {
  const qemu = spawn(program, ['tcg'], {
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
  });
  createInterface(qemu.stderr).on('line', onLine);
  // The shell prints the marks without the backslash of the echoed command line.
  const dialogue: (readonly [shown: RegExp, typed: string])[] = [
    [/login: $/, LOGIN.user],
    [/Password: $/, LOGIN.password],
    [/\$ $/, `printf '<\\074'; ${command}; printf '>\\076'`],
  ];
  let screen = '';
  let lineStart = '';
  try {
    for await (const chunk of qemu.stdout.setEncoding('utf8') as AsyncIterable<string>) {
      screen += chunk;
      const lines = (lineStart + chunk).split('\n');
      lineStart = lines.pop() ?? '';
      for (const line of lines) onLine(line.trim());
      const output = /<<(.*)>>/s.exec(screen)?.[1];
      if (output !== undefined) return output.replaceAll('\r', '').trim();
      const [shown, typed] = dialogue[0] ?? [];
      if (shown?.test(screen) !== true) continue;
      qemu.stdin.write(`${typed}\n`);
      screen = '';
      dialogue.shift();
    }
    throw new Error('QEMU ended before the login');
  } finally {
    qemu.kill();
    if (qemu.exitCode === null && qemu.signalCode === null) await once(qemu, 'exit');
  }
}
