import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Directory of the peers' sources. */
export const PEERS: string = join(import.meta.dirname, '../peers');

/** The C programs on libgearman. */
export interface CompiledPeers {
  readonly client: string;
  readonly worker: string;
  readonly remove: () => Promise<void>;
}

/** Compiles the client and the worker into a new directory. */
export async function compilePeers(): Promise<CompiledPeers> {
  const directory = await mkdtemp(join(tmpdir(), 'gearman-peers-'));
  const compile = async (name: string): Promise<string> => {
    const program = join(directory, name);
    const source = join(PEERS, `${name}.c`);
    await promisify(execFile)('gcc', ['-Wall', '-Wextra', '-Werror', '-o', program, source, '-lgearman']);
    return program;
  };
  const [client, worker] = await Promise.all([compile('client'), compile('worker')]);
  return { client, worker, remove: () => rm(directory, { recursive: true }) };
}
