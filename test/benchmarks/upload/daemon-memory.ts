import { link, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Client } from '@nodepool-builder/gearman-node';
import { type BuilderProcess, spawnDaemon } from '../../fixtures/builder-process.ts';
import { startGearmand } from '../../fixtures/gearmand.ts';
import { cloudsYaml } from '../../fixtures/openstack/account.ts';
import { openStack } from '../../fixtures/openstack/openstack.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from '../benchmark.ts';
import { NODEPOOL_BUILDER, stop } from '../daemon.ts';
import { megabytes, peakMemory } from '../peak-memory.ts';
import { IMAGE_LENGTH, largeImage } from './large-image.ts';

/** Memory limit in bytes. */
const BAR = 150e6;

const PROVIDERS = ['one', 'other'];

/** Measures the peak memory of the installed daemon during uploads to Glance. */
export const daemonMemory: Benchmark = { name: 'daemon-memory', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { after, progress, signal } = context;
  const image = await largeImage(context);
  const server = await startGearmand();
  after(() => server.stop());
  const daemon = await startDaemon(context, image, server.port);
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  after(() => client.close());
  const peak = (): Promise<number> => peakMemory(daemon.child.pid);
  const upload = async (provider: string): Promise<void> => {
    const payload = JSON.stringify({ provider, 'image-name': 'bench' });
    await unlessAborted(client.submit('image-upload:bench', payload), signal);
  };

  const started = await peak();
  progress(`${megabytes(started)}; uploading to one provider`);
  await upload('one');
  const one = await peak();
  progress(`${megabytes(one)}; uploading to two providers`);
  await Promise.all(PROVIDERS.map(upload));
  const two = await peak();
  const row = (what: string, bytes: number): Measurement => ({
    what: `**Peak memory of the daemon that uploads ${IMAGE_LENGTH} to ${what}**`,
    result: megabytes(bytes),
    bar: { limit: `< ${megabytes(BAR)}`, met: bytes < BAR },
  });
  return [
    { what: 'Peak memory of a daemon that has just started', result: megabytes(started) },
    row('Glance', one),
    row('Glance twice concurrently', two),
  ];
}

/** Starts the daemon by its shebang line, as an installed command starts. */
async function startDaemon(
  { after, progress, signal }: BenchmarkContext,
  image: string,
  port: number,
): Promise<BuilderProcess> {
  progress('starting Keystone and Glance');
  const cloud = await openStack();
  // Next to the image, so that a hard link can give it another name without a copy.
  const directory = await mkdtemp(join(dirname(image), 'site-'));
  after(() => rm(directory, { recursive: true }));
  const [clouds, config] = [join(directory, 'clouds.yaml'), join(directory, 'nodepool.yaml')];
  await mkdir(join(directory, 'images'));
  await link(image, join(directory, 'images/bench.raw'));
  const accounts = await Promise.all(
    PROVIDERS.map(async (name) => [name, (await cloud.createAccount()).cloud()] as const),
  );
  await writeFile(clouds, cloudsYaml(Object.fromEntries(accounts)));
  await writeFile(config, configuration(port));
  const daemon = spawnDaemon([
    'env',
    [`OS_CLIENT_CONFIG_FILE=${clouds}`, NODEPOOL_BUILDER, '-d', '-c', config],
  ]);
  after(() => stop(daemon));
  await unlessAborted(daemon.logged(/nodepool\.builder: serving /), signal);
  return daemon;
}

function configuration(port: number): string {
  const providers = PROVIDERS.map(
    (name) => `
  - {name: ${name}, cloud: ${name}, image-type: raw, max-servers: 1, images: [{name: bench, min-ram: 1}]}`,
  );
  return `
images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${port}}]
providers:${providers.join('')}
`;
}
