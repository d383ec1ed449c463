import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '../../fixtures/wait-until.ts';
import { type BenchmarkContext, unlessAborted } from '../benchmark.ts';
import { type Command, Program } from '../program.ts';
import type { Server } from './libraries/node-library.ts';

/** Makes a command run in a network namespace. */
type Inside = (command: Command) => Command;

const run = promisify(execFile);

/** Name of each end of the link. */
const INTERFACE = 'wire';

/** The namespace is empty, so that address and port are free. */
const SERVER: Server = { host: '192.0.2.1', port: 4730 };

/** Two network namespaces with a link between them. */
export interface LinkedNamespaces {
  /** Namespace of the job server. */
  readonly server: Inside;
  /** Namespace of the clients and workers. */
  readonly peers: Inside;
}

/**
 * Creates two network namespaces with a link between them, as between two machines: MTU 1500. They have no names, so
 * that they and the link disappear with the last process inside.
 */
export async function linkNamespaces(context: BenchmarkContext): Promise<LinkedNamespaces> {
  const { signal } = context;
  const [server, peers] = [await makeNamespace(context), await makeNamespace(context)];
  const link = ['type', 'veth', 'peer', 'name', INTERFACE, 'netns', String(peers)];
  await run('ip', ['link', 'add', 'name', INTERFACE, 'mtu', '1500', 'netns', String(server), ...link], {
    signal,
  });
  for (const [pid, address] of [
    [server, `${SERVER.host}/24`],
    [peers, '192.0.2.2/24'],
  ] as const) {
    const ip = async (...args: string[]) => {
      const [file, ...rest] = inside(pid)(['ip', ...args]);
      await run(file, rest, { signal });
    };
    await ip('address', 'add', address, 'dev', INTERFACE);
    await ip('link', 'set', INTERFACE, 'up');
  }
  return { server: inside(server), peers: inside(peers) };
}

/** Starts gearmand on one side, and waits until it accepts connections from the other. */
export async function startGearmandInside(
  { server, peers }: LinkedNamespaces,
  context: BenchmarkContext,
): Promise<Server> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-gearmand-'));
  context.after(() => rm(directory, { recursive: true }));
  const address = ['-p', String(SERVER.port)];
  const files = ['-l', join(directory, 'log'), '-P', join(directory, 'pid')];
  Program.start(
    server(['/usr/sbin/gearmand', '--threads=1', '-L', SERVER.host, ...address, ...files]),
    context,
  );
  const [file, ...args] = peers(['gearadmin', '-h', SERVER.host, ...address, '--server-version']);
  const listens = (): Promise<boolean> =>
    run(file, args).then(
      () => true,
      () => false,
    );
  await unlessAborted(waitUntil('gearmand to listen', listens), context.signal);
  return SERVER;
}

/** Starts a process in a new namespace. Returns its id. */
async function makeNamespace({ after, signal }: BenchmarkContext): Promise<number> {
  // `cat` echoes once the namespace is ready, and exits with this process.
  const holder = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'pipe', 'inherit'], signal });
  const exited = once(holder, 'exit').catch(() => {});
  after(async () => {
    holder.stdin.end();
    await exited;
  });
  holder.stdin.write('\n');
  await once(holder.stdout, 'data', { signal });
  return holder.pid as number;
}

function inside(pid: number): Inside {
  return (command) => ['nsenter', `--net=/proc/${pid}/ns/net`, '--', ...command];
}
