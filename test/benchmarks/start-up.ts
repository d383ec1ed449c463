import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import type { Benchmark, BenchmarkContext, Measurement } from './benchmark.ts';
import { NODEPOOL_BUILDER, spawnCompiled, stop, UNBUILT } from './daemon.ts';
import { distributionOf } from './distribution.ts';
import { makeImages, removeManifests } from './many-images.ts';
import { functionsOf, untilOffered } from './offered.ts';

const IMAGES = 2_000;

/** Samples of each kind of start. */
const STARTS = 5;

/** Samples of `--help`, and the most milliseconds of the best of them. */
const HELPS = 10;
const HELP_BAR = 150;

/** Milliseconds until all functions are offered. */
const BAR = 2_000;

/** Measures the time from the spawn of a daemon until gearmand lists all functions of a full images-dir. */
export const startUp: Benchmark = { name: 'start-up', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, progress } = context;
  progress(`making ${IMAGES} images`);
  const server = await startGearmand();
  context.after(() => server.stop());
  const site = await createSite(server.port, UNBUILT);
  context.after(() => site.remove());
  const admin = new Admin({ host: '127.0.0.1', port: server.port });
  context.after(() => admin.close());
  const functions = (await makeImages(site.images, IMAGES, signal)).flatMap(functionsOf);
  let daemon: BuilderProcess | undefined;
  context.after(async () => daemon && stop(daemon));

  const start = async (): Promise<number> => {
    const begin = performance.now();
    daemon = spawnCompiled(site.config);
    await untilOffered(admin, (offered) => functions.every((name) => offered.has(name)), signal);
    return performance.now() - begin;
  };
  const end = async (by: NodeJS.Signals): Promise<void> => {
    await daemon?.end(by);
    await untilOffered(admin, (offered) => offered.size === 0, signal);
  };
  const sample = async (what: string, by: NodeJS.Signals, prepare?: () => Promise<void>) => {
    const samples: number[] = [];
    while (samples.length < STARTS) {
      await prepare?.();
      samples.push(await start());
      await end(by);
      progress(`${what}: ${samples.at(-1)?.toFixed(0)} ms`);
    }
    return measured(what, samples);
  };

  const whole = `Start with ${IMAGES} images until their ${functions.length} functions are offered`;
  const rows = [
    await sample(`${whole}, images as builds left them`, 'SIGTERM'),
    await sample(`${whole}, after SIGKILL`, 'SIGKILL'),
    await sample(`${whole}, images put there by hand`, 'SIGTERM', () => removeManifests(site.images)),
  ];
  for (const [what, ...args] of [
    ['Of it: Node alone (`node -e 0`)', '-e', '0'],
    [
      'Of it: Node and the program without its work (`nodepool-builder serve --help`)',
      NODEPOOL_BUILDER,
      'serve',
      '--help',
    ],
  ] as const) {
    const samples: number[] = [];
    while (samples.length < STARTS) samples.push(await durationOf(args, signal));
    rows.push({ what, result: `median ${distributionOf(samples).median.toFixed(0)} ms` });
  }
  const samples: number[] = [];
  while (samples.length < HELPS) samples.push(await durationOf([NODEPOOL_BUILDER, '--help'], signal));
  const best = Math.min(...samples);
  const result = `best ${best.toFixed(0)} ms, median ${distributionOf(samples).median.toFixed(0)} ms of ${HELPS}`;
  const bar = { limit: `best < ${HELP_BAR} ms`, met: best < HELP_BAR };
  rows.push({ what: '`nodepool-builder --help`, with the time of Node', result, bar });
  return rows;
}

function measured(what: string, samples: readonly number[]): Measurement {
  const { median, max } = distributionOf(samples);
  const result = `median ${seconds(median)}, max ${seconds(max)} of ${samples.length}`;
  return { what, result, bar: { limit: `max < ${BAR / 1000} s`, met: max < BAR } };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}

/** Milliseconds that Node runs with these arguments. */
async function durationOf(args: readonly string[], signal: AbortSignal): Promise<number> {
  const begin = performance.now();
  await promisify(execFile)(process.execPath, args, { signal });
  return performance.now() - begin;
}
