import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@nodepool-builder/gearman-node';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import type { BuilderProcess } from '../../fixtures/builder-process.ts';
import { startGearmand } from '../../fixtures/gearmand.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from '../benchmark.ts';
import { type Ratio, ratioRow } from '../comparison.ts';
import { spawnCompiled, stop } from '../daemon.ts';
import { distributionOf } from '../distribution.ts';
import { IMAGE_LENGTH, largeImage } from './large-image.ts';

/** Providers by the format that each takes. The raw file is twice as long as the others. */
const PROVIDERS = [
  { format: 'raw', bytesPerSecond: 100e6, options: undefined },
  { format: 'qcow2', bytesPerSecond: 50e6, options: ['-O', 'qcow2'] },
  { format: 'vhd', bytesPerSecond: 50e6, options: ['-O', 'vpc', '-o', 'subformat=dynamic,force_size=on'] },
] as const;

const ROUNDS = 3;

/** Seconds of one round, by measurement. */
type Round = ReadonlyMap<string, number>;

const MADE = 'Timeline: the command has made the raw image';
const OFFERED = 'Timeline: the image is offered';
const DONE = 'Timeline: the last upload is done';
const DIGESTS = 'The digests of the raw image alone';
const CHAIN =
  'The longest chain: the command, `qemu-img convert` alone, the digests of both files alone, and the transfer at `bandwidth-limit`';

/** Measures a raw image that three providers want in three formats, from the build job to the last upload. */
export const timeline: Benchmark = { name: 'timeline', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { after, progress } = context;
  const source = await largeImage(context);
  const server = await startGearmand();
  after(() => server.stop());
  const site = await mkdtemp(join(dirname(source), 'site-'));
  after(() => rm(site, { recursive: true }));
  const daemon = await startDaemon(context, site, source, server.port);
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  after(() => client.close());
  const rounds: Round[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    rounds.push(await measure({ context, site, daemon, client }, `round-${round}`));
    progress(`round ${round} of ${ROUNDS}`);
  }
  return rowsOf(rounds);
}

interface Site {
  readonly context: BenchmarkContext;
  readonly site: string;
  readonly daemon: BuilderProcess;
  readonly client: Client;
}

async function measure({ context, site, daemon, client }: Site, imageId: string): Promise<Round> {
  const { signal } = context;
  const round = new Map<string, number>();
  const submit = (name: string, payload: object): Promise<unknown> =>
    unlessAborted(client.submit(name, JSON.stringify(payload)), signal);
  const begin = performance.now();
  const note = (what: string): void => void round.set(what, (performance.now() - begin) / 1000);
  const noteLine = async (what: string, line: RegExp): Promise<void> => {
    await unlessAborted(daemon.logged(line), signal);
    note(what);
  };
  await Promise.all([
    submit('image-build:bench', { 'image-id': imageId }),
    noteLine(MADE, new RegExp(`: made \\S*${imageId}\\.raw`)),
  ]);
  note(OFFERED);
  await Promise.all(
    PROVIDERS.flatMap(({ format }) => [
      submit(`image-upload:${imageId}`, { provider: format, 'image-name': 'bench' }).then(() =>
        note(`Timeline: the upload of ${format} is done`),
      ),
      noteLine(
        `Timeline: the upload of ${format} begins`,
        new RegExp(`uploading \\S*${imageId}\\.${format} as`),
      ),
    ]),
  );
  note(DONE);
  const image = join(site, 'images', imageId);
  round.set(DIGESTS, await digestsAlone(`${image}.raw`, signal));
  const built = (round.get(MADE) ?? 0) + (round.get(DIGESTS) ?? 0);
  round.set(CHAIN, built + (await longestAlone(image, signal)));
  await unlessAborted(client.submit(`image-delete:${imageId}`, ''), signal);
  for (const { format } of PROVIDERS) {
    await rm(join(site, format), { recursive: true });
    await mkdir(join(site, format));
  }
  return round;
}

/** Returns the seconds that the digests of a file take alone. */
async function digestsAlone(path: string, signal: AbortSignal): Promise<number> {
  const begin = performance.now();
  await checksumsOf(path, { signal });
  return (performance.now() - begin) / 1000;
}

/** Returns the seconds of the slowest conversion with its digests and its transfer, alone. */
async function longestAlone(image: string, signal: AbortSignal): Promise<number> {
  let longest = 0;
  for (const { format, bytesPerSecond, options } of PROVIDERS) {
    const begin = performance.now();
    const target = `${image}.alone`;
    if (options !== undefined) {
      const args = ['convert', '-W', '-m', '8', '-f', 'raw', ...options, `${image}.raw`, target];
      await promisify(execFile)('qemu-img', args, { signal });
      await digestsAlone(target, signal);
      await rm(target);
    }
    const { size } = await stat(`${image}.${format}`);
    longest = Math.max(longest, (performance.now() - begin) / 1000 + size / bytesPerSecond);
  }
  return longest;
}

function rowsOf(rounds: readonly Round[]): Measurement[] {
  const secondsOf = (what: string): Ratio => distributionOf(rounds.map((round) => round.get(what) ?? 0));
  const names = [...(rounds[0]?.keys() ?? [])].toSorted(
    (one, other) => secondsOf(one).median - secondsOf(other).median,
  );
  const ratio = distributionOf(rounds.map((round) => (round.get(DONE) ?? 0) / (round.get(CHAIN) ?? 0)));
  const what = `A build of ${IMAGE_LENGTH} and uploads in three formats, against the longest chain`;
  return [
    ...names.map((name) => {
      const { median, min, max } = secondsOf(name);
      return { what: name, result: `${median.toFixed(1)} s (${min.toFixed(1)}–${max.toFixed(1)})` };
    }),
    ratioRow(what, ratio, { atMost: 1.05 }),
  ];
}

async function startDaemon(
  { after, signal }: BenchmarkContext,
  site: string,
  source: string,
  port: number,
): Promise<BuilderProcess> {
  for (const name of ['images', ...PROVIDERS.map(({ format }) => format)]) await mkdir(join(site, name));
  const providers = PROVIDERS.map(({ format, bytesPerSecond }) => ({
    name: format,
    type: 'directory',
    directory: join(site, format),
    'image-type': format,
    'bandwidth-limit': bytesPerSecond,
    images: [{ name: 'bench', diskimage: 'bench' }],
  }));
  // The log also contains the command, with quotes inside the word.
  const script = 'cp --sparse=always "$1" "$2" && echo ": ma""de $2"';
  const command = ['sh', '-c', script, 'sh', source, '{output.raw}'];
  const config = join(site, 'nodepool.yaml');
  const configuration = {
    'images-dir': join(site, 'images'),
    'gearman-servers': [{ host: '127.0.0.1', port }],
    diskimages: [{ name: 'bench', builder: 'command', command }],
    providers,
  };
  await writeFile(config, JSON.stringify(configuration)); // YAML includes JSON
  const daemon = spawnCompiled(config);
  after(() => stop(daemon));
  await unlessAborted(daemon.logged(/nodepool\.builder: serving /), signal);
  return daemon;
}
