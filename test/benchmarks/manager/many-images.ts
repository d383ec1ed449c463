import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { JobServer, Worker, type WorkerFunction } from '@nodepool-builder/gearman-node';
import { openStateStore, type StateStore } from '@nodepool-builder/image-manager';
import { startPostgresql } from '../../fixtures/postgresql.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from '../benchmark.ts';
import { megabytes } from '../peak-memory.ts';
import { Program } from '../program.ts';
import { BUILDS, CONFIGURATION, fillStore, UPLOADS } from './many-records.ts';

/** Number of measured planning passes, after a warm-up. */
const PASSES = 10;

/** Milliseconds. */
const PASS_BAR = 800;

/** Bytes. */
const MEMORY_BAR = 250e6;

/** The same value as in the command `nodepool-builder`. */
const YOUNG_GENERATION = '--max-semi-space-size=1';

/** Measures planning time and memory of a manager with twenty thousand images, whose records are in SQLite. */
export const manyImages: Benchmark = {
  name: 'many-images',
  run: async (context) => {
    const directory = await mkdtemp(join(tmpdir(), 'bench-manager-'));
    context.after(() => rm(directory, { recursive: true, force: true }));
    const site = await startSite(context, join(directory, 'state.sqlite'));
    return [...(await measurePasses(site)), ...(await measureManager(context, site))];
  },
};

/** Measures the same manager with its records in PostgreSQL. Planning passes do not depend on the store. */
export const manyImagesInPostgresql: Benchmark = {
  name: 'postgresql',
  run: async (context) => {
    const server = await startPostgresql();
    context.after(() => server.stop());
    const url = await server.createDatabase();
    const rows = await measureManager(context, await startSite(context, url));
    const query = ['-Atc', 'SELECT pg_database_size(current_database())'];
    const { stdout } = await promisify(execFile)('psql', [url, ...query], { signal: context.signal });
    const size = { what: 'Size of the database', result: megabytes(Number(stdout)) };
    return [...rows, size].map(({ what, ...row }) => ({ what: `PostgreSQL: ${what}`, ...row }));
  },
};

/** Creates a store with all records, and a builder with all images. */
interface Site {
  readonly store: StateStore;
  readonly nextBuild: () => Promise<void>;
  readonly startProgram: () => Program;
}

async function startSite(context: BenchmarkContext, location: string): Promise<Site> {
  const { after, progress } = context;
  progress(`writing ${BUILDS} builds and ${UPLOADS} uploads`);
  const store = await openStateStore(location);
  after(() => store.close());
  await fillStore(store);
  const { port, nextBuild } = await startBuilder(context, [...(await store.read()).builds.keys()]);
  const program = await stripTypes(context, 'manager-program.ts', 'many-records.ts');
  const command = [process.execPath, YOUNG_GENERATION, program, location, port] as const;
  return { store, nextBuild, startProgram: () => Program.start(command, context) };
}

async function measurePasses({ startProgram }: Site): Promise<Measurement[]> {
  const planner = startProgram();
  const passes: number[] = [];
  for (let pass = 0; pass <= PASSES; pass += 1) passes.push(...(await planner.askNumbers('plan')));
  const [, ...warm] = passes;
  const [first = 0] = passes;
  const slowest = Math.max(...warm);

  const groupings: number[] = [];
  for (let pass = 0; pass <= PASSES; pass += 1) groupings.push(...(await planner.askNumbers('group')));
  const floor = Math.max(...groupings.slice(1));
  await planner.end();

  const images = `${BUILDS} images and ${UPLOADS} uploads`;
  return [
    { what: `First planning pass over ${images}`, result: `${first.toFixed(0)} ms` },
    {
      what: `Planning pass over ${images}, the slowest of ${PASSES}`,
      result: `${slowest.toFixed(0)} ms`,
      bar: { limit: `< ${PASS_BAR} ms`, met: slowest < PASS_BAR },
    },
    {
      what: `Grouping ${UPLOADS} uploads by image, provider and name alone, the slowest of ${PASSES}`,
      result: `${floor.toFixed(0)} ms`,
    },
  ];
}

/** Waits for a request, which is handled once the manager is the leader, has observed everything, and has planned. */
async function measureManager(
  { signal, progress }: BenchmarkContext,
  { store, nextBuild, startProgram }: Site,
): Promise<Measurement[]> {
  const manager = startProgram();
  const jobs = 3;
  const times: number[] = [];
  await manager.ask('manage');
  for (let job = 0; job < jobs; job += 1) {
    progress(`waiting for job ${job + 1} of ${jobs}`);
    const begun = nextBuild();
    const begin = performance.now();
    await store.ask({ kind: 'build', diskimage: CONFIGURATION.diskimages[job]?.name ?? '' });
    await unlessAborted(begun, signal);
    times.push(performance.now() - begin);
  }
  const [peak = 0] = await manager.askNumbers('memory');
  return [
    {
      what: 'From the start of the manager until a requested build is with its builder',
      result: `${((times[0] ?? 0) / 1000).toFixed(1)} s`,
    },
    {
      what: 'Peak memory of the leader that scans for orphans and starts builds',
      result: megabytes(peak),
      bar: { limit: `< ${megabytes(MEMORY_BAR)}`, met: peak < MEMORY_BAR },
    },
  ];
}

/** Compiled program, as users install it, because stripping types at run time takes memory. */
async function stripTypes({ after }: BenchmarkContext, ...files: readonly [string, string]): Promise<string> {
  const cache = join(import.meta.dirname, '../../../node_modules/.cache'); // where it finds the packages
  await mkdir(cache, { recursive: true });
  const directory = await mkdtemp(join(cache, 'bench-manager-'));
  after(() => rm(directory, { recursive: true, force: true }));
  for (const file of files) {
    const code = stripTypeScriptTypes(await readFile(join(import.meta.dirname, file), 'utf8'));
    await writeFile(join(directory, file.replace(/ts$/, 'mjs')), code.replaceAll(".ts';", ".mjs';"));
  }
  return join(directory, files[0].replace(/ts$/, 'mjs'));
}

/** Starts a job server with a builder that has all images, and never finishes a build. */
async function startBuilder(
  { after, signal }: BenchmarkContext,
  imageIds: readonly string[],
): Promise<{ readonly port: string; readonly nextBuild: () => Promise<void> }> {
  const server = new JobServer();
  after(() => server.close());
  const address = await server.listen(0);
  const worker = new Worker({ servers: [address], concurrency: 10 });
  after(() => worker.close({ signal: AbortSignal.abort() }));
  let begun: (() => void) | undefined;
  const build: WorkerFunction = async (job) => {
    begun?.();
    await unlessAborted(new Promise<never>(() => {}), AbortSignal.any([signal, job.signal]));
    return '';
  };
  const functions = new Map<string, WorkerFunction>();
  for (const { name } of CONFIGURATION.diskimages) functions.set(`image-build:${name}`, build);
  for (const id of imageIds) functions.set(`image-upload:${id}`, unasked).set(`image-delete:${id}`, unasked);
  const connected = new Promise((resolve) => worker.once('connect', resolve));
  worker.setFunctions(functions);
  await unlessAborted(connected, signal);
  await worker.registered({ signal });
  const nextBuild = (): Promise<void> =>
    new Promise((resolve) => {
      begun = resolve;
    });
  return { port: String(address.port), nextBuild };
}

function unasked(): never {
  throw new Error('unexpected upload or deletion');
}
