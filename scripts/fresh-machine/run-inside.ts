import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { detachLoopDevicesOf, grandchildrenOf, mountsOf, newFiles, settled } from './left-behind.ts';
import { type Machine, USER } from './machine.ts';

/** Outcome of a command on a machine. */
export interface Outcome {
  readonly status: number;
  readonly standardError: string;
  /** One line for everything that the command left behind. */
  readonly leftBehind: readonly string[];
}

/** Runs a command in the checkout of a machine, in its own namespaces, which end with the command. */
export async function runInside(machine: Machine, command: readonly string[]): Promise<Outcome> {
  console.log(`\nfresh-machine: ${command.join(' ')}`);
  const { root, environment, path, checkout, user } = machine;
  const began = Date.now();
  const login = user ? [`--reuid=${USER.id}`, `--regid=${USER.id}`, '--init-groups'] : [];
  const namespaces = ['--mount', '--propagation=private', '--pid', '--fork', '--kill-child'];
  const enter = ['sh', join(import.meta.dirname, 'enter.sh'), root];
  const settings = ['--unset=OLDPWD', `--chdir=${checkout}`, `PATH=${path}`];
  const child = spawn(
    'unshare',
    [...namespaces, ...enter, 'setpriv', ...login, 'env', ...settings, ...command],
    {
      stdio: ['inherit', 'inherit', 'pipe', 'pipe', 'pipe'],
      // Not passed as arguments, because a proxy URL may contain a password.
      env: { ...environment, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    },
  );
  const closed = once(child, 'close');
  const [, , standardError, status, hold] = child.stdio as [null, null, Readable, Readable, Writable];
  status.setEncoding('utf8');
  standardError.pipe(process.stderr);
  let said = '';
  standardError.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  // unshare also holds the descriptor, so it ends without a line only if the command did not start.
  const [line = ''] = (await Promise.race([once(status, 'data'), once(status, 'end')])) as [string?];
  const leftBehind = line === '' ? [] : await findLeftBehind(machine, child.pid as number, began);
  hold.end();
  const [code] = (await closed) as [number | null];
  return { status: line === '' ? (code ?? 1) : Number(line), standardError: said, leftBehind };
}

/** Finds what the command left behind, while the first process of the namespaces, a child of `pid`, waits. */
async function findLeftBehind(machine: Machine, pid: number, began: number): Promise<string[]> {
  const npmCaches = ['.npm', '.cache/node-gyp'].map((name) => join(machine.home, name));
  const running = await settled(() => grandchildrenOf(pid));
  return [
    ...running,
    ...mountsOf(pid),
    ...(await detachLoopDevicesOf(machine.root)),
    ...(await newFiles(machine.root, began, [machine.checkout, ...npmCaches])),
  ];
}
