import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BenchmarkContext } from '../benchmark.ts';
import type { Command } from '../program.ts';
import { PEERS } from './libraries/peers.ts';

/** Name of this project's library in all results. */
export const OURS = '@nodepool-builder/gearman-node';

export const LIBGEARMAN = 'libgearman (C)';

export const PERL = 'Gearman (Perl)';

/** Libraries from npm, by package name. */
export const NPM_PEERS = ['abraxas', 'gearman', 'gearman-node', 'gearmanode', 'node-gearman'] as const;

/** A library that is compared with others. */
export interface Library {
  readonly name: string;
  /** Returns the command that starts the program in a role. The sources of the programs list the roles. */
  readonly command: (role: string, ...args: readonly (string | number)[]) => Command;
}

const run = promisify(execFile);

/** Prepares all libraries: npm installs some, and the C compiler builds another. */
export async function prepareLibraries(context: BenchmarkContext): Promise<Library[]> {
  await installPeers(context);
  const npmPeers = NPM_PEERS.map((name) => nodeLibrary(name, name));
  return [await libgearman(context), nodeLibrary(OURS, 'ours'), perl, ...npmPeers];
}

/** Compiles the program that uses libgearman. */
export async function libgearman({ signal, after }: BenchmarkContext): Promise<Library> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-libgearman-'));
  after(() => rm(directory, { recursive: true }));
  const program = join(directory, 'libgearman');
  const source = join(import.meta.dirname, 'libgearman.c');
  await run('gcc', ['-O2', '-o', program, source, '-lgearman'], { signal });
  return { name: LIBGEARMAN, command: (role, ...args) => [program, role, ...args.map(String)] };
}

/** This project's compiled library, as users install it. */
export const ours: Library = nodeLibrary(OURS, 'ours');

/** Minimum that a program on Node.js needs, with one job of 64 bytes in flight. */
export const floor: Library = {
  name: 'bare node:net, constant packets',
  command: (role, ...args) => [
    process.execPath,
    join(import.meta.dirname, 'floor-program.ts'),
    role,
    ...args.map(String),
  ],
};

const perl: Library = {
  name: PERL,
  command: (role, ...args) => [
    'perl',
    join(import.meta.dirname, 'perl-gearman.pl'),
    role,
    ...args.map(String),
  ],
};

/** @param module file in `libraries` that drives it */
export function nodeLibrary(name: string, module: string): Library {
  const program = join(import.meta.dirname, 'node-program.ts');
  return {
    name,
    command: (role, ...args) => [
      process.execPath,
      '--no-warnings', // most of them use `new Buffer`
      program,
      module,
      role,
      ...args.map(String),
    ],
  };
}

/** Installs the packages in the lock file unless they are installed. */
export async function installPeers({ signal, progress }: BenchmarkContext): Promise<void> {
  const check = join(import.meta.dirname, '../../../scripts/npm-packages-current.mjs');
  const current = run(process.execPath, [check], { cwd: PEERS, signal });
  if (await current.then(() => true).catch(() => false)) return;
  progress('installing the libraries of npm (npm ci)');
  await run('npm', ['ci', '--ignore-scripts', '--loglevel=error'], { cwd: PEERS, signal });
}
