import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ImageFile } from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import { loadCloudSettings, OpenStackProvider } from '@nodepool-builder/provider-openstack';
import { type Account, cloudsYaml } from '../../fixtures/openstack/account.ts';
import { openStack } from '../../fixtures/openstack/openstack.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { distributionOf } from '../distribution.ts';
import { IMAGE_LENGTH, largeImage } from './large-image.ts';

const OURS = '@nodepool-builder/provider-openstack, until the image is active';
const AFTER_BUILD = `${OURS}, with the digests of its build`;
const CURL = '`curl -T`';

const ROUNDS = 5;

const SECONDS: Unit = { name: 's', digits: 2 };

/** Measures uploads to a real Glance, which is slower than its clients. */
export const glance: Benchmark = { name: 'glance', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  context.progress('starting Keystone and Glance');
  const account = await (await openStack()).createAccount();
  const image = await largeImage(context);
  const provider = await openProvider(account, context);
  const file: ImageFile = { format: 'raw', path: image, size: (await stat(image)).size };
  const checksums = await checksumsOf(image, context);
  const processors = { known: [] as number[], computed: [] as number[] };
  const samples = await compare(
    [
      { name: CURL, sample: () => curl(account, image, context) },
      {
        name: AFTER_BUILD,
        sample: () => upload(provider, { ...file, checksums }, processors.known, context),
      },
      { name: OURS, sample: () => upload(provider, file, processors.computed, context) },
    ],
    context,
    ROUNDS,
  );
  return [
    ...rowsOf(`${IMAGE_LENGTH} to Glance`, SECONDS, samples),
    ...Object.values(processors).map((seconds, index) => ({
      what: `Processor time of our process, ${index === 0 ? 'with the digests of its build' : 'with digests to compute'}`,
      result: `${distributionOf(seconds).median.toFixed(2)} s`,
    })),
    ratioRow('After a build, against `curl -T`', ratioOf(samples, AFTER_BUILD, CURL), { atMost: 1.02 }),
    ratioRow('With digests to compute, against `curl -T`', ratioOf(samples, OURS, CURL), { atMost: 1.03 }),
  ];
}

async function openProvider(account: Account, { after }: BenchmarkContext): Promise<OpenStackProvider> {
  const home = await mkdtemp(join(tmpdir(), 'bench-clouds-'));
  after(() => rm(home, { recursive: true }));
  const file = join(home, 'clouds.yaml');
  await writeFile(file, cloudsYaml({ glance: account.cloud() }));
  const provider = new OpenStackProvider({
    name: 'glance',
    formats: ['raw'],
    settings: () =>
      loadCloudSettings(
        { cloud: 'glance', provider: { name: 'glance' } },
        { env: { OS_CLIENT_CONFIG_FILE: file }, cwd: home, home, warn: ignore },
      ),
    logger: { debug: ignore, info: ignore, warn: console.warn, error: console.error },
  });
  after(async () => provider[Symbol.dispose]());
  return provider;
}

/**
 * Uploads and deletes. Only the upload is measured.
 *
 * @param processors receives the seconds of processor time of this process
 */
async function upload(
  provider: OpenStackProvider,
  file: ImageFile,
  processors: number[],
  { signal }: BenchmarkContext,
): Promise<number> {
  const [begin, before] = [performance.now(), process.cpuUsage()];
  const { externalId } = await provider.upload(
    { uploadId: 'bench', imageId: 'bench', imageName: 'bench', file },
    { signal },
  );
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(before);
  processors.push((user + system) / 1e6);
  await provider.delete(externalId, { signal });
  return seconds;
}

/** Does the same with curl, which needs an existing image and a token. */
async function curl(account: Account, path: string, { signal }: BenchmarkContext): Promise<number> {
  const api = await account.glance();
  const { id } = await api.request<{ id: string }>('POST', '/images', {
    name: 'bench',
    disk_format: 'raw',
    container_format: 'bare',
  });
  const { token } = await account.issueToken();
  // Omit "Expect: 100-continue", which curl may wait for.
  const headers = [`X-Auth-Token: ${token}`, 'Content-Type: application/octet-stream', 'Expect:'];
  const options = [
    '--silent',
    '--show-error',
    '--fail',
    ...headers.flatMap((header) => ['--header', header]),
  ];
  const begin = performance.now();
  await promisify(execFile)('curl', [...options, '-T', path, `${account.imageUrl}/v2/images/${id}/file`], {
    signal,
  });
  const seconds = (performance.now() - begin) / 1000;
  await api.request('DELETE', `/images/${id}`);
  return seconds;
}

function ignore(): void {}
