import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@nodepool-builder/gearman-node';
import { freePort } from '../../../scripts/free-port.ts';
import { type BuilderProcess, spawnDaemon } from '../../fixtures/builder-process.ts';
import { waitUntil } from '../../fixtures/wait-until.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from '../benchmark.ts';
import { NODEPOOL_BUILDER } from '../daemon.ts';
import { megabytes, peakMemory } from '../peak-memory.ts';
import { processorTime } from '../processor-time.ts';

const LINES = 200_000;
const FOLLOWERS = 10;

/** Builds of each kind, in turns. */
const RUNS = 3;

/** Maximum increase of a build's duration because of followers, as a fraction. */
const BAR = 0.03;

/** Seconds in which a build writes its log, which is many times the rate of diskimage-builder. */
const BUILD = 20;

/** Writes the log in steps. The argument is the image to create. */
const SCRIPT = `
const { setTimeout: delay } = await import('node:timers/promises');
const text = 'dib-run-parts Running /tmp/in_target.d/install.d/10-install: Setting up package ';
const begun = performance.now();
for (let line = 0; line < ${LINES}; ) {
  const due = ${LINES} * (performance.now() - begun) / ${BUILD * 1000};
  let lines = '';
  for (; line < due && line < ${LINES}; line += 1) lines += text + line + '\\n';
  process.stdout.write(lines);
  await delay(20);
}
const { writeFileSync, truncateSync } = await import('node:fs');
writeFileSync(process.argv[1], '');
truncateSync(process.argv[1], 4096);`;

/** Reads the events of a log to their end, several times in parallel. The arguments are the URL and the number. */
const FOLLOWER = `
const [, url, count] = process.argv;
await Promise.all(Array.from({ length: Number(count) }, async () => {
  for (let tail = ''; !tail.includes('event: end'); ) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) for await (const part of response.body) tail = Buffer.from(part.subarray(-200)).toString();
    if (tail.includes('no builder has')) tail = '';
  }
}));`;

/** Measures the load from ten followers of a log on the builder and on the web process. */
export const logFollowers: Benchmark = { name: 'log-followers', run };

interface Run {
  /** Duration of the build job. */
  readonly seconds: number;
  /** Processor time of the builder, in seconds. */
  readonly cpu: number;
  /** Maximum resident memory of the web process so far, in bytes. */
  readonly memory: number;
}

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-followers-'));
  context.after(() => rm(directory, { recursive: true, force: true }));
  const rows: Measurement[] = [];
  for (const isApart of [true, false]) {
    const place = isApart ? 'page in the manager’s process' : 'all in one process';
    const site = await startSite(context, join(directory, isApart ? 'apart' : 'one'), isApart);
    const alone: Run[] = [];
    const followed: Run[] = [];
    await build(context, site, 'warm-up', 0);
    for (let turn = 1; turn <= RUNS; turn += 1) {
      context.progress(`${place}: build ${turn} of ${RUNS}`);
      alone.push(await build(context, site, `alone-${turn}`, 0));
      followed.push(await build(context, site, `followed-${turn}`, FOLLOWERS));
    }
    await site.close();
    rows.push(...rowsOf(place, alone, followed));
  }
  return rows;
}

function rowsOf(place: string, alone: readonly Run[], followed: readonly Run[]): Measurement[] {
  const ratio = median(followed, 'seconds') / median(alone, 'seconds') - 1;
  const bar = { limit: `< ${BAR * 100} %`, met: ratio < BAR };
  const [warm, peak] = [followed[0]?.memory ?? 0, followed.at(-1)?.memory ?? 0];
  return [
    {
      what: `Extra time of a build with ${LINES} log lines and ${FOLLOWERS} followers, ${place}`,
      result: `${(ratio * 100).toFixed(1)} % (${median(alone, 'seconds').toFixed(1)} s alone)`,
      bar,
    },
    {
      what: `Processor time of the builder, alone and followed, ${place}`,
      result: `${median(alone, 'cpu').toFixed(2)} s, ${median(followed, 'cpu').toFixed(2)} s`,
    },
    {
      what: `Peak memory of the page’s process after the first and the last followed build, ${place}`,
      result: `${megabytes(warm)}, ${megabytes(peak)}`,
    },
  ];
}

function median(runs: readonly Run[], key: keyof Run): number {
  const sorted = runs.map((one) => one[key]).toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

interface Site {
  readonly url: string;
  readonly client: Client;
  readonly builder: BuilderProcess;
  readonly page: BuilderProcess;
  close(): Promise<void>;
}

async function startSite(
  { after, signal }: BenchmarkContext,
  directory: string,
  isApart: boolean,
): Promise<Site> {
  await mkdir(join(directory, 'images'), { recursive: true });
  const [port, webPort] = [await freePort(), await freePort()];
  const command = [process.execPath, '--input-type=module', '--eval', SCRIPT, '{output.raw}'];
  const settings = {
    'images-dir': 'images',
    'gearman-servers': [{ host: '127.0.0.1', port }],
    manager: { store: 'state.sqlite' },
    diskimages: [{ name: 'lines', builder: 'command', formats: ['raw'], command }],
  };
  const [config, empty] = ['nodepool.yaml', 'manager.yaml'].map((name) => join(directory, name)) as [
    string,
    string,
  ];
  await writeFile(config, JSON.stringify(settings));
  await writeFile(empty, JSON.stringify({ ...settings, diskimages: [] })); // so that only the benchmark starts builds
  const start = (...args: readonly string[]): BuilderProcess => {
    // Otherwise this process would also receive the build's log lines.
    const daemon = spawnDaemon([process.execPath, [NODEPOOL_BUILDER, ...args, '--log-level=warn']]);
    after(() => (daemon.child.exitCode === null ? daemon.end('SIGTERM') : Promise.resolve()));
    return daemon;
  };
  const web = `--web=${webPort}`;
  const builder = start('-d', '-c', config, '--embedded-gearmand', ...(isApart ? [] : [web]));
  const page = isApart ? start('manage', '-c', empty, web) : builder;
  const url = `http://127.0.0.1:${webPort}`;
  await waitUntil('the page', async () => (await fetch(`${url}/livez`).catch(() => undefined))?.ok);
  signal.throwIfAborted();
  const client = new Client({ servers: [{ host: '127.0.0.1', port }] });
  after(() => client.close());
  const close = async (): Promise<void> => {
    await client.close();
    if (isApart) await page.end('SIGTERM');
    await builder.end('SIGTERM');
  };
  return { url, client, builder, page, close };
}

async function build(
  { after, signal }: BenchmarkContext,
  { client, url, builder, page }: Site,
  imageId: string,
  followers: number,
): Promise<Run> {
  const address = `${url}/builds/${imageId}/log/events`;
  const follower = ['--input-type=module', '--eval', FOLLOWER, address, String(followers)];
  // The followers leave the processors to the build, as browsers on other hosts do.
  const following = spawn('nice', ['-n', '19', process.execPath, ...follower], { stdio: 'inherit' });
  after(() => Promise.resolve(following.kill()));
  const { own: before } = await processorTime(builder.child.pid);
  const begun = performance.now();
  await unlessAborted(
    client.submit('image-build:lines', JSON.stringify({ 'image-id': imageId })).result,
    signal,
  );
  const seconds = (performance.now() - begun) / 1000;
  const cpu = (await processorTime(builder.child.pid)).own - before;
  await unlessAborted(Promise.resolve(following.exitCode ?? once(following, 'exit')), signal);
  return { seconds, cpu, memory: await peakMemory(page.child.pid) };
}
