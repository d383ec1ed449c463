import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Admin } from '@nodepool-builder/gearman-node';
import { freePort } from '../../../scripts/free-port.ts';
import { end, launch } from '../../fixtures/job-server-process.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { NODEPOOL_BUILDER } from '../daemon.ts';
import { megabytes, peakMemory } from '../peak-memory.ts';
import { processorTime } from '../processor-time.ts';
import { Program } from '../program.ts';
import { BUILD_FUNCTIONS } from './fleet-functions.ts';

/** Images of each builder. */
const IMAGES = 2_000;

/** Fleet sizes. The last one is the goal. */
const FLEETS = [50, 100, 200];

/** Time limit in seconds for the largest fleet. */
const BAR = 30;

/** Timeout of a registration in seconds, which stops fleets that never finish. */
const LIMIT = 600;

/** Polling interval in milliseconds. */
const PAUSE = 50;

/** A job server under test. */
interface JobServerKind {
  readonly name: string;
  readonly command: (port: number) => readonly [file: string, ...args: string[]];
}

const GEARMAND: JobServerKind = {
  name: 'gearmand',
  command: (port) => [
    '/usr/sbin/gearmand',
    '-L',
    '127.0.0.1',
    '-p',
    String(port),
    '-l',
    'none',
    '-f',
    '8192',
  ],
};

const OURS: JobServerKind = {
  name: 'nodepool-builder gearmand',
  command: (port) => [
    process.execPath,
    NODEPOOL_BUILDER,
    'gearmand',
    '-p',
    String(port),
    '--log-level',
    'error',
  ],
};

/** Measures how long a fleet takes to register everything again after its job server restarted. */
export const restart: Benchmark = { name: 'restart', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const rows: Measurement[] = [];
  for (const server of [GEARMAND, OURS]) {
    for (const builders of FLEETS) rows.push(...(await measure(server, builders, context)));
  }
  return rows;
}

/** Cost of registering all functions. */
interface Registration {
  /** Seconds until all functions were registered. */
  readonly all: number;
  /** Processor time of the job server in seconds. */
  readonly processor: number;
  /** Peak memory of the job server in bytes. */
  readonly memory: number;
}

async function measure(
  server: JobServerKind,
  builders: number,
  context: BenchmarkContext,
): Promise<Measurement[]> {
  const functions = 2 * IMAGES * builders + BUILD_FUNCTIONS.length;
  const what = `${builders} builders with ${IMAGES} images each (${functions} functions), ${server.name}`;
  context.progress(what);
  const floor = await measureFloor(server, builders, context);
  context.progress(`bare sockets: ${floor.all.toFixed(1)} s`);
  const { builds, lost, ...ours } = await measureFleet(server, builders, functions, context);
  context.progress(`all offered again: ${ours.all.toFixed(1)} s`);
  const ratio = floor.all / ours.all;
  const isGoal = builders === FLEETS.at(-1);
  return [
    {
      what: `${what}: offered again after a restart`,
      result: `${ours.all.toFixed(1)} s; builds ${builds.toFixed(1)} s; ${lost} connections lost meanwhile`,
      ...(isGoal && { bar: { limit: `≤ ${BAR} s`, met: ours.all <= BAR } }),
    },
    {
      what: `**${what}: speed against the same packets over bare sockets** (${floor.all.toFixed(1)} s)`,
      result: `× ${ratio.toFixed(2)}`,
      bar: { limit: '≥ × 0.7', met: ratio >= 0.7 },
    },
    {
      what: `${what}: the job server`,
      result: `${ours.processor.toFixed(1)} s of processor time (bare sockets: ${floor.processor.toFixed(1)} s), peak memory ${megabytes(ours.memory)}`,
    },
  ];
}

async function measureFloor(
  kind: JobServerKind,
  builders: number,
  context: BenchmarkContext,
): Promise<Registration> {
  const port = await freePort();
  const program = start('floor-program.ts', port, builders, context);
  const server = await startServer(kind, port, context);
  const begin = performance.now();
  await program.ask('go', LIMIT);
  const registration = await registrationSince(begin, server);
  await program.end();
  await end(server, 'SIGKILL');
  return registration;
}

async function measureFleet(
  kind: JobServerKind,
  builders: number,
  functions: number,
  context: BenchmarkContext,
): Promise<Registration & { readonly builds: number; readonly lost: number }> {
  const port = await freePort();
  const earlier = await startServer(kind, port, context);
  const program = start('fleet-program.ts', port, builders, context);
  // The first registration shows the workers that the server replies to ECHO_REQ, which confirmations rely on.
  while ((await countFunctions(port)) < functions) await delay(20 * PAUSE, undefined, context);
  await end(earlier, 'SIGKILL');
  const state = async (): Promise<readonly [builds: number, images: number, lost: number]> => {
    const [builds = 0, images = 0, lost = 0] = await program.askNumbers('state');
    return [builds, images, lost];
  };
  while ((await state())[0] + (await state())[1] > 0) await delay(PAUSE, undefined, context);
  const [, , lostBefore] = await state();
  const server = await startServer(kind, port, context);
  const begin = performance.now();
  const seconds = (): number => (performance.now() - begin) / 1000;
  let builds: number | undefined;
  for (;;) {
    await delay(PAUSE, undefined, context);
    const [withBuilds, withImages, lost] = await state();
    if (withBuilds === builders) builds ??= seconds();
    if (builds !== undefined && withBuilds === builders && withImages === builders) {
      const registration = await registrationSince(begin, server);
      const offered = await countFunctions(port);
      if (offered !== functions) throw new Error(`${offered} of ${functions} functions are offered`);
      await program.end();
      await end(server, 'SIGKILL');
      return { ...registration, builds, lost: lost - lostBefore };
    }
    if (seconds() > LIMIT)
      throw new Error(`not registered after ${LIMIT} s: ${withBuilds}, ${withImages}, ${lost}`);
  }
}

function start(file: string, port: number, builders: number, context: BenchmarkContext): Program {
  const path = join(import.meta.dirname, file);
  return Program.start([process.execPath, path, String(port), String(builders), String(IMAGES)], context);
}

async function startServer(
  { command }: JobServerKind,
  port: number,
  { after }: BenchmarkContext,
): Promise<ChildProcess> {
  const [file, ...args] = command(port);
  const server = await launch(file, args, port);
  after(() => end(server, 'SIGKILL'));
  return server;
}

/** Returns the number of functions that have a worker. */
async function countFunctions(port: number): Promise<number> {
  const admin = new Admin({ host: '127.0.0.1', port }, { timeout: LIMIT * 1000 });
  try {
    return (await admin.status()).filter(({ availableWorkers }) => availableWorkers > 0).length;
  } finally {
    await admin.close();
  }
}

async function registrationSince(begin: number, server: ChildProcess): Promise<Registration> {
  const all = (performance.now() - begin) / 1000;
  return { all, processor: (await processorTime(server.pid)).own, memory: await peakMemory(server.pid) };
}
