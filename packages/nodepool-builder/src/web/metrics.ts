import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { packageVersion } from '../version.ts';
import type { WebContext } from './context.ts';
import type { SiteRecords } from './records.ts';
import { siteRecords } from './site-records.ts';

/** A value with its labels. */
type Sample = readonly [labels: Readonly<Record<string, string>>, value: number | undefined];

/** A gauge, and how it follows from the state of the site. */
interface Metric {
  readonly help: string;
  readonly labels: readonly string[];
  readonly samples: (records: SiteRecords) => readonly Sample[];
}

/** All gauges by name, without the prefix. Labels have only names of the configuration, of hosts and of states. */
const METRICS: Readonly<Record<string, Metric>> = {
  newest_build_timestamp_seconds: {
    help: 'When the newest good build of a disk image was requested',
    labels: ['diskimage'],
    samples: ({ images }) =>
      images.map((image) => [{ diskimage: image.name }, secondsOf(image['newest-requested'])]),
  },
  newest_upload_timestamp_seconds: {
    help: 'When the newest good image in a provider was requested',
    labels: ['diskimage', 'provider', 'image_name'],
    samples: ({ images }) =>
      images.flatMap(({ name, providers }) =>
        providers.map((place): Sample => {
          const labels = { diskimage: name, provider: place.provider, image_name: place['image-name'] };
          return [labels, secondsOf(place['newest-requested'])];
        }),
      ),
  },
  builds: {
    help: 'Builds in the records of the manager',
    labels: ['diskimage', 'state'],
    samples: ({ builds }) =>
      counted(builds, ({ diskimage, state }) => ({ diskimage: diskimage ?? '', state })),
  },
  uploads: {
    help: 'Uploads in the records of the manager',
    labels: ['diskimage', 'provider', 'state'],
    samples: ({ uploads }) =>
      counted(uploads, ({ diskimage, provider, state }) => ({ diskimage, provider, state })),
  },
  last_build_duration_seconds: {
    help: 'Time from the request of the newest good build to its end',
    labels: ['diskimage'],
    samples: ({ images, builds }) =>
      images.map(({ name, newest }) => {
        const build = builds.find((one) => one['image-id'] === newest);
        const end = secondsOf(build?.ended ?? null);
        return [{ diskimage: name }, end && end - (secondsOf(build?.requested ?? null) ?? end)];
      }),
  },
  builders: {
    help: 'Builders that are connected',
    labels: [],
    samples: ({ builders }) => [[{}, builders.length]],
  },
  running_jobs: {
    help: 'Builds and uploads that run at a builder',
    labels: ['host', 'kind'],
    samples: ({ builders }) =>
      builders.flatMap(({ host, jobs }) =>
        (['build', 'upload'] as const).map((kind): Sample => {
          return [{ host, kind }, jobs.filter((job) => job.kind === kind).length];
        }),
      ),
  },
  disk_free_bytes: {
    help: 'Bytes that an image may take in the images-dir of a builder',
    labels: ['host', 'images_dir'],
    samples: ({ builders }) =>
      builders.map((one) => [{ host: one.host, images_dir: one['images-dir'] }, one['disk-free']]),
  },
  disk_size_bytes: {
    help: 'Bytes of the file system with the images-dir of a builder',
    labels: ['host', 'images_dir'],
    samples: ({ builders }) =>
      builders.map((one) => [{ host: one.host, images_dir: one['images-dir'] }, one['disk-size']]),
  },
  job_server_up: {
    help: 'Whether a job server answers',
    labels: ['server'],
    samples: ({ servers }) => servers.map(({ address, answers }) => [{ server: address }, Number(answers)]),
  },
  queued_jobs: {
    help: 'Jobs that wait at a job server',
    labels: ['server'],
    samples: ({ servers }) => servers.map(({ address, queued }) => [{ server: address }, queued]),
  },
};

/** Serves the state of the site and of this process to Prometheus, and an address that shows that the process lives. */
export function metrics(server: FastifyInstance, { view }: WebContext): void {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // promtool refuses these names of prom-client.
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${what}_total`);
  }
  const info = { help: 'Version of nodepool-builder', labelNames: ['version'], registers: [registry] };
  new Gauge({ ...info, name: 'nodepool_builder_build_info' }).set({ version: packageVersion() }, 1);
  const gauges = Object.entries(METRICS).map(([name, { help, labels, samples }]) => {
    const options = { name: `nodepool_builder_${name}`, help, labelNames: labels, registers: [registry] };
    return { gauge: new Gauge(options), samples };
  });
  server.get('/metrics', async (_request, reply) => {
    const records = siteRecords(await view.current());
    for (const { gauge, samples } of gauges) {
      gauge.reset(); // a disk image or a builder may be gone
      for (const [labels, value] of samples(records)) if (value !== undefined) gauge.set(labels, value);
    }
    return await reply.type(registry.contentType).send(await registry.metrics());
  });
  server.get('/livez', async (_request, reply) => await reply.type('text/plain; charset=UTF-8').send('OK'));
}

function secondsOf(iso: string | null): number | undefined {
  return iso === null ? undefined : Date.parse(iso) / 1000;
}

/** Counts the records with the same labels. */
function counted<T>(
  records: readonly T[],
  labelsOf: (record: T) => Readonly<Record<string, string>>,
): readonly Sample[] {
  const groups = Map.groupBy(records.map(labelsOf), (labels) => JSON.stringify(labels));
  return Array.from(groups.values(), (group): Sample => [group[0] ?? {}, group.length]);
}
