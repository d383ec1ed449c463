import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import { verbOf } from '../protocol/functions.ts';
import type { UploadRecord } from '../site/records.ts';
import { packageVersion } from '../terms/version.ts';
import type { WebContext } from './context.ts';
import { type SiteRecords, siteRecords } from './site-records.ts';
import type { Site } from './site-view.ts';

/** A value with its labels. */
type Sample = readonly [labels: Readonly<Record<string, string>>, value: number | undefined];

/** A gauge, and its values in a state of the site. */
interface Metric {
  readonly help: string;
  readonly labels: readonly string[];
  readonly samples: (records: SiteRecords, site: Site) => readonly Sample[];
}

/** All gauges by name, without the prefix. Label values are only names of the configuration, of hosts and of states. */
const METRICS: Readonly<Record<string, Metric>> = {
  newest_build_timestamp_seconds: {
    help: 'Request time of the newest good build of a disk image',
    labels: ['diskimage'],
    samples: ({ images }) =>
      images.map((image) => [{ diskimage: image.diskimage }, secondsOf(image['newest-requested'])]),
  },
  newest_upload_timestamp_seconds: {
    help: 'Request time of the newest good image in a provider',
    labels: ['diskimage', 'provider', 'image_name'],
    samples: ({ images }) =>
      images.flatMap(({ diskimage, providers }) =>
        providers.map((place): Sample => {
          const labels = { diskimage, provider: place.provider, image_name: place['image-name'] };
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
    samples: ({ images, builds }) => {
      const byId = new Map(builds.map((build) => [build['image-id'], build]));
      return images.map(({ diskimage, newest }) => {
        const build = byId.get(newest ?? '');
        return [{ diskimage }, build && secondsFromRequest(build)];
      });
    },
  },
  last_upload_duration_seconds: {
    help: 'Time from the request of the newest good upload to its end',
    labels: ['diskimage', 'provider', 'image_name'],
    samples: ({ uploads }) =>
      newestOf(uploads.filter(({ state }) => state === 'ready')).map((upload) => [
        placeOf(upload),
        secondsFromRequest(upload),
      ]),
  },
  image_missing: {
    help: 'A provider has no good image, but should have one (1), or not (0)',
    labels: ['diskimage', 'provider', 'image_name'],
    samples: ({ images }, { plan }) =>
      images.flatMap(({ diskimage, providers, paused: isPaused }) =>
        providers.map((place): Sample => {
          const labels = { diskimage, provider: place.provider, image_name: place['image-name'] };
          const isMissing = place.newest === null && !place.paused && !isPaused;
          return [labels, plan && Number(isMissing)]; // unknown without the records of a manager
        }),
      ),
  },
  builders: {
    help: 'Builders that are connected',
    labels: [],
    samples: ({ builders }) => [[{}, builders.length]],
  },
  builder_info: {
    help: 'Builders that are connected, with their releases',
    labels: ['host', 'version'],
    samples: ({ builders }) => builders.map(({ host, version }) => [{ host, version }, 1]),
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
    help: 'Free bytes for images in the images-dir of a builder',
    labels: ['host', 'images_dir'],
    samples: ({ builders }) =>
      builders.map((one) => [{ host: one.host, images_dir: one['images-dir'] }, one['disk-free']]),
  },
  disk_size_bytes: {
    help: 'Size in bytes of the file system with the images-dir of a builder',
    labels: ['host', 'images_dir'],
    samples: ({ builders }) =>
      builders.map((one) => [{ host: one.host, images_dir: one['images-dir'] }, one['disk-size']]),
  },
  job_server_up: {
    help: 'A job server replies (1) or not (0)',
    labels: ['server'],
    samples: ({ servers }) => servers.map(({ address, answers }) => [{ server: address }, Number(answers)]),
  },
  queued_jobs: {
    help: 'Jobs that wait at a job server; jobs of unknown functions count as "other"',
    labels: ['server', 'function'],
    samples: (_records, site) => queuedJobs(site),
  },
  build_workers: {
    help: 'Workers of builders that offer to build a disk image that is not paused',
    labels: ['diskimage'],
    samples: ({ images }, { servers }) => {
      const workers = Map.groupBy(
        servers.flatMap(({ functions = [] }) => functions),
        ({ name }) => name,
      );
      const active = images.filter(({ paused }) => !paused);
      return active.map(({ diskimage }): Sample => {
        const numbers = (workers.get(`image-build:${diskimage}`) ?? []).map((one) => one.availableWorkers);
        return [{ diskimage }, Math.max(0, ...numbers)]; // a builder registers with each of its job servers
      });
    },
  },
  problems: {
    help: 'Parts of the site that the status page cannot read',
    labels: [],
    samples: ({ problems }) => [[{}, problems.length]],
  },
};

/** The gauges of this process's builder. */
function localMetrics({ repository, uploads }: NodepoolBuilder): Readonly<Record<string, Metric>> {
  return {
    image_size_bytes: {
      help: 'Size of the newest image in images-dir here',
      labels: ['diskimage', 'format'],
      samples: (_records, { configuration: { diskimages } }) => {
        const newest = new Map(
          [...repository.images.values()]
            .toSorted((one, other) => one.builtAt.getTime() - other.builtAt.getTime())
            .map((image) => [image.name, image]),
        );
        return diskimages.flatMap(({ name }) =>
          (newest.get(name)?.files ?? []).map(
            ({ format, size }): Sample => [{ diskimage: name, format }, size],
          ),
        );
      },
    },
    orphaned_uploads: {
      help: 'Interrupted uploads from here that are neither resumed nor discarded yet',
      labels: ['provider'],
      samples: (_records, { configuration: { providers } }) =>
        providers.map(({ name }) => [{ provider: name }, uploads.orphans.get(name) ?? 0]),
    },
  };
}

/** Serves the state of the site and of this process to Prometheus, and an address for liveness checks. */
export function metrics(server: FastifyInstance, { view, events, builder }: WebContext): void {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // promtool rejects these names of prom-client.
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${what}_total`);
  }
  const info = { help: 'Version of nodepool-builder', labelNames: ['version'], registers: [registry] };
  new Gauge({ ...info, name: 'nodepool_builder_build_info' }).set({ version: packageVersion() }, 1);
  const table = { ...METRICS, ...(builder && localMetrics(builder)) };
  const gauges = Object.entries(table).map(([name, { help, labels: labelNames, samples }]) => {
    const options = { name: `nodepool_builder_${name}`, help, labelNames, registers: [registry] };
    return { gauge: new Gauge(options), samples };
  });
  server.get('/metrics', async (_request, reply) => {
    const site = await view.current();
    const records = siteRecords(site);
    for (const { gauge, samples } of gauges) {
      gauge.reset(); // a disk image or a builder may have been removed
      for (const [labels, value] of samples(records, site)) if (value !== undefined) gauge.set(labels, value);
    }
    const text = await Promise.all([registry.metrics(), events.registry.metrics()]);
    return await reply.type(registry.contentType).send(text.join('\n'));
  });
  server.get('/livez', async (_request, reply) => await reply.type('text/plain; charset=UTF-8').send('OK'));
}

/** Number of waiting jobs by function: `image-build:` with a disk image of the configuration, or the verb alone. */
function queuedJobs({ configuration, servers }: Site): readonly Sample[] {
  const builds = configuration.diskimages.map(({ name }) => `image-build:${name}`);
  const names = [...builds, 'image-upload', 'image-delete', 'other'];
  const known = new Set(names);
  return servers.flatMap(({ address, functions }) => {
    if (functions === undefined) return [];
    const queued = new Map(names.map((name) => [name, 0]));
    for (const { name, total, running } of functions) {
      const label = [name, verbOf(name)].find((one) => known.has(one)) ?? 'other';
      queued.set(label, (queued.get(label) ?? 0) + total - running);
    }
    return Array.from(queued, ([name, jobs]): Sample => [{ server: address, function: name }, jobs]);
  });
}

/** Returns the newest record of each image in each provider. The records are sorted newest first. */
function newestOf(uploads: readonly UploadRecord[]): readonly UploadRecord[] {
  return [...new Map(uploads.toReversed().map((one) => [JSON.stringify(placeOf(one)), one])).values()];
}

function placeOf({ diskimage, provider, 'image-name': imageName }: UploadRecord) {
  return { diskimage, provider, image_name: imageName };
}

function secondsOf(iso: string | null): number | undefined {
  return iso === null ? undefined : Date.parse(iso) / 1000;
}

function secondsFromRequest({
  requested,
  ended,
}: Pick<UploadRecord, 'requested' | 'ended'>): number | undefined {
  if (requested === null || ended === null) return undefined;
  return (Date.parse(ended) - Date.parse(requested)) / 1000;
}

/** Counts the records with the same labels. */
function counted<T>(
  records: readonly T[],
  labelsOf: (record: T) => Readonly<Record<string, string>>,
): readonly Sample[] {
  const groups = Map.groupBy(records.map(labelsOf), (labels) => JSON.stringify(labels));
  return Array.from(groups.values(), (group): Sample => [group[0] ?? {}, group.length]);
}
