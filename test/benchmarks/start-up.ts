import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import type { Benchmark, BenchmarkContext, Measurement } from './benchmark.ts';
import { compare } from './comparison.ts';
import { NODEPOOL_BUILDER, spawnCompiled, stop, UNBUILT } from './daemon.ts';
import { distributionOf } from './distribution.ts';
import { makeImages, removeManifests } from './many-images.ts';
import { functionsOf, untilOffered } from './offered.ts';

const IMAGES = 2_000;

/** Samples of each kind of start. */
const STARTS = 5;

/** Maximum time in milliseconds until all functions are offered. */
const BAR = 800;

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

  /** Starts a daemon. Returns the time until it serves, and the time until gearmand lists its functions. */
  const start = async (
    config: string,
    wanted: readonly string[],
  ): Promise<[serves: number, offers: number]> => {
    const begin = performance.now();
    daemon = spawnCompiled(config);
    await daemon.logged(/ serving /);
    const serves = performance.now() - begin;
    await untilOffered(admin, (offered) => wanted.every((name) => offered.has(name)), signal);
    return [serves, performance.now() - begin];
  };
  const end = async (by: NodeJS.Signals): Promise<void> => {
    await daemon?.end(by);
    await untilOffered(admin, (offered) => offered.size === 0, signal);
  };
  const sample = async (what: string, by: NodeJS.Signals, prepare?: () => Promise<void>) => {
    const samples: number[] = [];
    while (samples.length < STARTS) {
      await prepare?.();
      const [, offers] = await start(site.config, functions);
      samples.push(offers);
      await end(by);
      progress(`${what}: ${offers.toFixed(0)} ms`);
    }
    return measured(what, samples);
  };

  const whole = `Start with ${IMAGES} images until their ${functions.length} functions are offered`;
  const emptySite = await createSite(server.port, UNBUILT);
  context.after(() => emptySite.remove());
  const startAndEnd = async (config: string, wanted: readonly string[]): Promise<readonly number[]> => {
    const times = await start(config, wanted);
    await end('SIGTERM');
    return times;
  };
  const node = async (...args: readonly string[]): Promise<readonly number[]> => {
    const begin = performance.now();
    await promisify(execFile)(process.execPath, args, { signal });
    return [performance.now() - begin];
  };
  const steps = await compare(
    [
      { name: 'alone', sample: () => node('-e', '0') },
      { name: 'modules', sample: () => node(NODEPOOL_BUILDER, 'serve', '--help') },
      { name: 'empty', sample: () => startAndEnd(emptySite.config, []) },
      { name: 'images', sample: () => startAndEnd(site.config, functions) },
    ],
    context,
    STARTS,
  );
  const medianOf = (name: string, index = 0): number =>
    distributionOf((steps.get(name) ?? []).map((times) => times[index] ?? 0)).median;
  const parts: readonly (readonly [what: string, until: number])[] = [
    ['Node.js has started (`node -e 0`)', medianOf('alone')],
    ['the modules are loaded (`nodepool-builder serve --help`)', medianOf('modules')],
    ['it serves an empty images-dir', medianOf('empty')],
    [`it serves ${IMAGES} images`, medianOf('images')],
    [`gearmand lists their ${functions.length} functions`, medianOf('images', 1)],
  ];
  return [
    await sample(`${whole}, images from builds`, 'SIGTERM'),
    ...parts.map(([what, until]) => ({
      what: `Steps of a start: until ${what}`,
      result: `median ${until.toFixed(0)} ms`,
    })),
    await sample(`${whole}, after SIGKILL`, 'SIGKILL'),
    await sample(`${whole}, images added by hand`, 'SIGTERM', () => removeManifests(site.images)),
  ];
}

function measured(what: string, samples: readonly number[]): Measurement {
  const { median, max } = distributionOf(samples);
  const result = `median ${seconds(median)}, max ${seconds(max)} of ${samples.length}`;
  return { what, result, bar: { limit: `median ≤ ${BAR / 1000} s`, met: median <= BAR } };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}
