/**
 * Works in a repository until it is killed: `crash-victim.ts IMAGES-DIR OPERATION [COUNT]`. With a count, it kills
 * itself before the step with this number.
 */
import childProcess from 'node:child_process';
import fsPromises, { mkdir, writeFile } from 'node:fs/promises';
import { flushCompileCache, syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { bootableDisk } from '../../../test/fixtures/qemu/boot-sector.ts';
import { DibBuilder, ImageRepository } from '../src/index.ts';
import { MINI_OS } from './mini-os.ts';
import { ScriptedBuilder } from './scripted-builder.ts';

/** Steps that a successor can notice, including the start of a command. */
const STEPS = ['mkdtemp', 'rename', 'rm', 'writeFile'] as const;

const [directory = '', operation = '', count] = process.argv.slice(2);
const repository = await ImageRepository.open(directory);

/** Variables of the elements. */
const miniVariables = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => name.startsWith('MINI_')),
);

/** Creates `a` as raw and as tar, and a directory next to it. */
async function build(): Promise<void> {
  const builder = new ScriptedBuilder(
    async (context) => {
      for (const format of context.formats) await writeFile(context.outputPath(format), `${format} content`);
      await mkdir(join(context.directory, 'a.d'));
      await writeFile(join(context.directory, 'a.d', 'dib-manifest'), 'packages');
    },
    { formats: ['raw', 'tar'] },
  );
  await builder.build({ imageId: 'a', repository });
}

interface Operation {
  readonly prepare: () => Promise<unknown>;
  readonly run: () => Promise<unknown>;
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  build: { prepare: () => Promise.resolve(), run: build },
  convert: { prepare: build, run: () => repository.file('a', ['qcow2']) },
  delete: { prepare: build, run: () => repository.delete('a') },
  'build-hanging-boot': {
    prepare: () => Promise.resolve(),
    run: () =>
      new ScriptedBuilder(({ outputPath }) => writeFile(outputPath('raw'), bootableDisk('hanging\n')), {
        validation: { boot: { expect: /never/, accelerator: 'tcg', memory: 64 } },
      }).build({ imageId: 'a', repository, onLine: console.log }),
  },
  'build-mini-escape': {
    prepare: () => Promise.resolve(),
    run: () =>
      new DibBuilder(
        { ...MINI_OS, envVars: { ...MINI_OS.envVars, ...miniVariables } },
        { elements: 'mini-escape mini-hang' },
      ).build({ imageId: 'a', repository, onLine: console.log }),
  },
  'build-mini-hang': {
    prepare: () => Promise.resolve(),
    run: () =>
      new DibBuilder(
        { ...MINI_OS, envVars: { ...MINI_OS.envVars, MINI_HANG_PHASE: 'finalise.d' } },
        { elements: 'mini-hang' },
      ).build({ imageId: 'a', repository, onLine: console.log }),
  },
};

function killBefore(step: number): void {
  let left = step;
  const watch = <Name extends string>(
    module: Record<Name, (...args: never[]) => unknown>,
    name: Name,
  ): void => {
    const original = module[name];
    module[name] = (...args) => {
      left -= 1;
      if (left === 0) process.kill(process.pid, 'SIGKILL');
      return original(...args);
    };
  };
  for (const name of STEPS) watch(fsPromises as never, name);
  watch(childProcess as never, 'spawn');
  syncBuiltinESMExports();
}

const { prepare, run } = OPERATIONS[operation] ?? {};
if (prepare === undefined || run === undefined) throw new Error(`no operation "${operation}"`);
await prepare();
flushCompileCache(); // Node does not save the cache of a killed process
if (count !== undefined) killBefore(Number(count));
await run();
await repository.close();
