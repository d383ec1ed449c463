import type { ManagerEvent, UnrecordedImage } from '@nodepool-builder/image-manager';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { JobEvent, JobResult } from '../daemon/jobs/statistics.ts';
import { shownState } from '../site/shown-state.ts';

/** Histogram buckets for builds, uploads and conversions, in seconds: a minute to eight hours. */
const LONG = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800];

/** Histogram buckets for requests to a provider, in seconds. */
const SHORT = [0.1, 0.5, 1, 5, 30, 120];

const RESULTS: readonly JobResult[] = ['success', 'failure', 'cancelled'];

type Labels = Readonly<Record<string, string>>;

/** Help and labels of metrics, by name without the prefix. */
type Metrics = Readonly<Record<string, readonly [help: string, ...labels: string[]]>>;

const COUNTERS = {
  build_jobs_total: ['Builds that ended here', 'diskimage', 'result'],
  upload_jobs_total: ['Uploads that ended here', 'diskimage', 'provider', 'result'],
  upload_bytes_total: ['Bytes sent from here by uploads', 'provider'],
  build_results_total: ['Builds that ended, as seen by the manager', 'diskimage', 'result'],
  upload_results_total: ['Uploads that ended, as seen by the manager', 'diskimage', 'provider', 'result'],
  build_retries_total: ['Builds started after a failed one', 'diskimage'],
  upload_retries_total: ['Uploads started after a failed one', 'diskimage', 'provider'],
  step_retries_total: ['Steps of the manager that failed and were retried, such as deletions', 'step'],
  orphan_deletions_total: ['Attempts to delete an orphan', 'kind', 'provider', 'result'],
} as const satisfies Metrics;

const GAUGES = {
  last_upload_size_bytes: ['Size of the last successful upload from here', 'diskimage', 'provider'],
  orphans: ['Orphans that the last scan of the manager found', 'kind', 'provider'],
} as const satisfies Metrics;

const DURATIONS = {
  build_duration_seconds: ['Duration of the successful builds here', 'diskimage'],
  upload_duration_seconds: ['Duration of the successful uploads from here', 'provider'],
  conversion_duration_seconds: ['Duration of the conversions of images here', 'format'],
  provider_request_duration_seconds: [
    'Duration of the requests to a provider from here',
    'provider',
    'request',
  ],
} as const satisfies Metrics;

/** The part of a configuration that the labels name. */
interface ConfiguredNames {
  readonly diskimages: readonly { readonly name: string }[];
  readonly providers: readonly { readonly name: string }[];
}

/**
 * Counts the events of this process since its start: of its own jobs if it is a builder, of the whole site if it is the
 * manager. The series of a disk image or a provider end when it is removed from the configuration.
 */
export class EventMetrics {
  readonly registry: Registry = new Registry();
  readonly #counters = this.#open(COUNTERS, (options) => new Counter(options));
  readonly #gauges = this.#open(GAUGES, (options) => new Gauge(options));
  readonly #durations = this.#open(DURATIONS, (options) => {
    const buckets = options.labelNames.includes('request') ? SHORT : LONG;
    return new Histogram({ ...options, buckets });
  });
  readonly #leader: Gauge | undefined;
  #known: Readonly<Record<string, ReadonlySet<string>>> = {};

  /** @param runsManager a manager runs in this process */
  constructor(configuration: ConfiguredNames, { runsManager }: { readonly runsManager: boolean }) {
    void this.configure(configuration);
    const gauge = { manager_leader: ['This manager is the leader (1) or not (0)'] } as const;
    if (runsManager) this.#leader = this.#open(gauge, (options) => new Gauge(options)).manager_leader;
  }

  /** Counts an event of a job or a provider. */
  readonly onJobEvent = (event: JobEvent): void => {
    if (!this.#isConfigured(event)) return;
    switch (event.kind) {
      case 'build-started':
        startAtZero(this.#counters.build_jobs_total, { diskimage: event.diskimage });
        break;
      case 'build-ended': {
        const { diskimage, result, seconds } = event;
        this.#counters.build_jobs_total.inc({ diskimage, result });
        if (result === 'success') this.#durations.build_duration_seconds.observe({ diskimage }, seconds);
        break;
      }
      case 'upload-started':
        startAtZero(this.#counters.upload_jobs_total, {
          diskimage: event.diskimage,
          provider: event.provider,
        });
        break;
      case 'upload-ended': {
        const { diskimage, provider, result, seconds, size } = event;
        this.#counters.upload_jobs_total.inc({ diskimage, provider, result });
        if (result !== 'success') break;
        this.#durations.upload_duration_seconds.observe({ provider }, seconds);
        if (size !== undefined) this.#gauges.last_upload_size_bytes.set({ diskimage, provider }, size);
        break;
      }
      case 'sent':
        this.#counters.upload_bytes_total.inc({ provider: event.provider }, event.bytes);
        break;
      case 'converted':
        this.#durations.conversion_duration_seconds.observe({ format: event.format }, event.seconds);
        break;
      case 'requested':
        this.#durations.provider_request_duration_seconds.observe(
          { provider: event.provider, request: event.request },
          event.seconds,
        );
        break;
      case 'orphan-ended':
        this.#orphanEnded({ kind: event.orphan, provider: event.provider }, event.isDeleted);
        break;
    }
  };

  /** Counts an event of the manager. */
  readonly onManagerEvent = (event: ManagerEvent): void => {
    if ('record' in event && !this.#isConfigured(event.record)) return;
    switch (event.kind) {
      case 'started': {
        const { record, isRetry } = event;
        const { diskimage } = record;
        if ('provider' in record) {
          const labels = { diskimage, provider: record.provider };
          startAtZero(this.#counters.upload_results_total, labels);
          this.#counters.upload_retries_total.inc(labels, Number(isRetry));
        } else {
          startAtZero(this.#counters.build_results_total, { diskimage });
          this.#counters.build_retries_total.inc({ diskimage }, Number(isRetry));
        }
        break;
      }
      case 'ended': {
        const { record } = event;
        const { diskimage } = record;
        const state = shownState(record);
        const result = state === 'ready' ? 'success' : state === 'cancelled' ? 'cancelled' : 'failure';
        if ('provider' in record)
          this.#counters.upload_results_total.inc({ diskimage, provider: record.provider, result });
        else this.#counters.build_results_total.inc({ diskimage, result });
        break;
      }
      case 'retry':
        this.#counters.step_retries_total.inc({ step: event.step });
        break;
      case 'scanned':
        this.#gauges.orphans.reset();
        for (const orphan of event.orphans) {
          if (this.#isConfigured(labelsOf(orphan))) this.#gauges.orphans.inc(labelsOf(orphan));
        }
        break;
      case 'orphan':
        if (!this.#isConfigured(labelsOf(event.orphan))) break;
        this.#orphanEnded(labelsOf(event.orphan), event.isDeleted);
        break;
      case 'leadership':
        this.#leader?.set(Number(event.isLeader));
        if (!event.isLeader) this.#gauges.orphans.reset(); // the next leader scans
        break;
    }
  };

  /** Removes the series of disk images and providers that are no longer configured, and ignores their later events. */
  async configure({ diskimages, providers }: ConfiguredNames): Promise<void> {
    this.#known = {
      diskimage: new Set(diskimages.map(({ name }) => name)),
      provider: new Set(['', ...providers.map(({ name }) => name)]),
    };
    for (const { name, values } of await this.registry.getMetricsAsJSON()) {
      for (const { labels } of values) {
        const { le: _, ...own } = labels as Labels;
        if (!this.#isConfigured(own)) this.registry.getSingleMetric(name)?.remove(own);
      }
    }
  }

  #isConfigured(labels: object): boolean {
    return Object.entries(labels).every(([label, value]) => this.#known[label]?.has(String(value)) ?? true);
  }

  #orphanEnded(labels: { readonly kind: string; readonly provider: string }, isDeleted: boolean): void {
    this.#counters.orphan_deletions_total.inc({ ...labels, result: isDeleted ? 'success' : 'failure' });
  }

  #open<T extends Metrics, M>(
    metrics: T,
    make: (options: { name: string; help: string; labelNames: string[]; registers: Registry[] }) => M,
  ): Readonly<Record<keyof T, M>> {
    const opened = Object.entries(metrics).map(([name, [help, ...labelNames]]) => {
      const options = { name: `nodepool_builder_${name}`, help, labelNames, registers: [this.registry] };
      return [name, make(options)] as const;
    });
    return Object.fromEntries(opened) as Record<keyof T, M>;
  }
}

/**
 * Creates the series of a counter before the first event, because Prometheus sees no increase in a series that begins
 * with 1.
 */
function startAtZero(counter: Counter, labels: Labels): void {
  for (const result of RESULTS) counter.inc({ ...labels, result }, 0);
}

function labelsOf(orphan: UnrecordedImage): { readonly kind: string; readonly provider: string } {
  if (orphan.location === 'builder') return { kind: 'files', provider: '' };
  return { kind: 'image', provider: orphan.provider };
}
