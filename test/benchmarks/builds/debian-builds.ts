import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client } from '@nodepool-builder/gearman-node';
import type { DibSettings, DiskImage } from '@nodepool-builder/image-builder';
import { inheritedEnvironment } from '@nodepool-builder/image-builder/internal';
import { dump, load } from 'js-yaml';
import { dibArguments, dibVariables } from '../../../packages/image-builder/src/dib.ts';
import { OWN_ELEMENTS } from '../../../packages/image-builder/src/dib-elements.ts';
import { startDebianProxy } from '../../../scripts/debian-proxy.ts';
import { requireSpace, requireSudo } from '../../../scripts/quickstart/machine.ts';
import { startGearmand } from '../../fixtures/gearmand.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from '../benchmark.ts';
import { ratioOf, ratioRow, type Samples } from '../comparison.ts';
import { spawnCompiled, stop } from '../daemon.ts';
import { distributionOf } from '../distribution.ts';
import { processorTime } from '../processor-time.ts';

const ROOT = join(import.meta.dirname, '../../..');
const TEMPLATE = join(ROOT, 'examples/quickstart/nodepool.yaml');
const ELEMENTS = join(ROOT, 'examples/on-instance/elements');

/** Rounds, each with one build by disk-image-create alone and one by the daemon. */
const ROUNDS = 3;

const FORMATS = ['raw', 'qcow2'] as const;

/** Duration of a build in seconds. */
interface BuildTime {
  readonly elapsed: number;
  /** Processor time of all processes, including the daemon. */
  readonly processor: number;
  /** Processor time of the daemon itself, for the log, the checksums and the publication. */
  readonly own: number;
}

type Processors = Omit<BuildTime, 'elapsed'>;

interface Template {
  readonly diskimages: readonly (DibSettings & {
    readonly release: string;
    readonly 'env-vars': Readonly<Record<string, string>>;
  })[];
}

/** Builds the quickstart's Debian image with an empty cache, with a full cache, and by disk-image-create alone. */
export const debianBuilds: Benchmark = { name: 'debian', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { after, progress } = context;
  await requireSudo();
  const directory = await mkdtemp(join(tmpdir(), 'bench-builds-'));
  after(() => rm(directory, { recursive: true, force: true }));
  await requireSpace(directory);
  const images = join(directory, 'images');
  await mkdir(images);
  const proxy = await startDebianProxy();
  after(async () => await proxy[Symbol.asyncDispose]());
  const { envVars, settings, release } = await debian(proxy.url);
  const server = await startGearmand();
  after(() => server.stop());
  const diskimage = { name: 'debian', formats: FORMATS, release, ...settings, 'env-vars': envVars };
  const config = join(directory, 'nodepool.yaml');
  const configuration = {
    'images-dir': images,
    'elements-dir': ELEMENTS,
    'gearman-servers': [{ host: '127.0.0.1', port: server.port }],
    diskimages: [diskimage],
  };
  await writeFile(config, dump(configuration));
  const daemon = spawnCompiled(config);
  after(() => stop(daemon));
  await unlessAborted(daemon.logged(/nodepool\.builder: serving /), context.signal);
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  after(() => client.close());
  const byDaemon = async (imageId: string): Promise<BuildTime> =>
    await timed(context, `image ${imageId} by the daemon`, async () => {
      const before = await processorTime(daemon.child.pid);
      const job = client.submit('image-build:debian', JSON.stringify({ 'image-id': imageId }));
      await unlessAborted(job, context.signal);
      const now = await processorTime(daemon.child.pid);
      const own = now.own - before.own;
      return { processor: own + now.children - before.children, own };
    });
  const remove = async (imageId: string): Promise<void> => {
    await client.submit(`image-delete:${imageId}`, '');
  };

  const first = await byDaemon('first');
  await remove('first');
  const cache = join(images, '.nodepool-builder', 'cache', 'debian');
  const times: Record<'bare' | 'daemon', BuildTime[]> = { bare: [], daemon: [] };
  let digests = 0;
  for (let round = 1; round <= ROUNDS; round += 1) {
    const output = await mkdtemp(join(directory, 'bare-'));
    const environment = { ...envVars, DIB_IMAGE_CACHE: cache, TMP_DIR: join(output, 'tmp') };
    const elementsDir = `${ELEMENTS}:${OWN_ELEMENTS}`;
    const bare = { ...diskimage, elementsDir, envVars: environment };
    times.bare.push(
      await timed(context, 'disk-image-create alone', () => buildAlone(settings, bare, output, context)),
    );
    await rm(output, { recursive: true });
    times.daemon.push(await byDaemon(`round-${round}`));
    if (round === ROUNDS) digests = await digestsAlone(images, context);
    await remove(`round-${round}`);
    progress(`round ${round} of ${ROUNDS}`);
  }
  const digestRow = {
    what: 'MD5 and SHA-256 of the files of one build, by `openssl dgst`',
    result: `${digests.toFixed(1)} s of processor time`,
  };
  return [...rowsOf(first, times), digestRow];
}

function timeRow(what: string, times: readonly BuildTime[]): Measurement {
  const [elapsed, processor, own] = (['elapsed', 'processor', 'own'] as const).map((key) =>
    distributionOf(times.map((time) => time[key])).median.toFixed(1),
  );
  const ofDaemon = own === '0.0' ? '' : `; the daemon itself ${own} s`;
  return { what, result: `${elapsed} s, ${processor} s of processor time${ofDaemon}` };
}

function rowsOf(first: BuildTime, times: Record<'bare' | 'daemon', BuildTime[]>): Measurement[] {
  const pick = (key: keyof BuildTime): Samples =>
    new Map(Object.entries(times).map(([name, own]) => [name, own.map((time) => time[key])]));
  const again = times.daemon.map(({ elapsed }) => elapsed);
  const second: Samples = new Map([
    ['second', again],
    ['first', again.map(() => first.elapsed)],
  ]);
  return [
    timeRow('First build of the quickstart’s Debian image, raw and qcow2', [first]),
    timeRow('Next builds', times.daemon),
    timeRow('Builds by `disk-image-create` alone, with the same cache', times.bare),
    ratioRow('Next build against the first', ratioOf(second, 'second', 'first'), { atMost: 0.6 }),
    ratioRow('Daemon against `disk-image-create` alone', ratioOf(pick('elapsed'), 'daemon', 'bare'), {
      atMost: 1.01,
    }),
    ratioRow(
      'Daemon against `disk-image-create` alone, processor time',
      ratioOf(pick('processor'), 'daemon', 'bare'),
      { atMost: 1.05 },
    ),
  ];
}

async function debian(proxy: string): Promise<{
  readonly envVars: Readonly<Record<string, string>>;
  readonly settings: DibSettings;
  readonly release: string;
}> {
  const [entry] = (load(await readFile(TEMPLATE, 'utf8')) as Template).diskimages;
  if (entry === undefined) throw new Error(`${TEMPLATE} has no disk image`);
  const { elements, release, 'qemu-img-options': options, 'env-vars': variables } = entry;
  const settings = {
    ...(elements !== undefined && { elements }),
    ...(options !== undefined && { 'qemu-img-options': options }),
  };
  return { release, settings, envVars: { ...variables, http_proxy: proxy } };
}

async function timed(
  { progress, signal }: BenchmarkContext,
  what: string,
  work: () => Promise<Processors>,
): Promise<BuildTime> {
  signal.throwIfAborted();
  const begin = performance.now();
  const { processor, own } = await work();
  const elapsed = (performance.now() - begin) / 1000;
  progress(`${what}: ${elapsed.toFixed(1)} s, ${processor.toFixed(1)} s of processor time`);
  return { elapsed, processor, own };
}

/** Runs disk-image-create with the daemon's arguments. Returns its processor time. */
async function buildAlone(
  settings: DibSettings,
  diskimage: DiskImage,
  directory: string,
  { signal }: BenchmarkContext,
): Promise<Processors> {
  await mkdir(join(directory, 'tmp'));
  const output = join(directory, 'image');
  const env = {
    ...inheritedEnvironment(),
    ...dibVariables(diskimage, output),
    ...(diskimage.envVars as Record<string, string>),
  };
  const args = ['disk-image-create', ...dibArguments(settings, FORMATS, output)];
  const script = '"$@" >/dev/null 2>&1 </dev/null || exit';
  return { processor: await processorTimeOf(script, args, { cwd: directory, env, signal }), own: 0 };
}

/** Returns the processor time that `openssl dgst` needs for the digests that a build computes. */
async function digestsAlone(images: string, { signal }: BenchmarkContext): Promise<number> {
  const files = (await readdir(images)).filter((name) =>
    FORMATS.some((format) => name.endsWith(`.${format}`)),
  );
  if (files.length !== FORMATS.length) throw new Error(`the builds left ${files.join(', ')} in ${images}`);
  const script = 'for digest in -md5 -sha256; do openssl dgst "$digest" "$@" >/dev/null || exit; done';
  return await processorTimeOf(script, files, { cwd: images, env: process.env, signal });
}

/** Returns the processor time of the programs that a bash script runs. */
async function processorTimeOf(
  script: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly signal: AbortSignal },
): Promise<number> {
  const child = spawn('bash', ['-c', `${script}; times`, 'bash', ...args], {
    ...options,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [times, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`${script} ${args.join(' ')} ended with exit code ${code}`);
  // The last line of `times` contains the time of the children.
  return [...(times.trim().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  );
}
