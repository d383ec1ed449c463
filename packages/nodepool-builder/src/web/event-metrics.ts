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
type EventMetric = Counter | Gauge | Histogram;

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
  readonly #metrics: EventMetric[] = [];
  readonly #buildJobs = this.#counter('build_jobs_total', 'Builds that ended here', ['diskimage', 'result']);
  readonly #buildDuration = this.#histogram(
    'build_duration_seconds',
    'Duration of the successful builds here',
    ['diskimage'],
    LONG,
  );
  readonly #uploadJobs = this.#counter('upload_jobs_total', 'Uploads that ended here', [
    'diskimage',
    'provider',
    'result',
  ]);
  readonly #uploadDuration = this.#histogram(
    'upload_duration_seconds',
    'Duration of the successful uploads from here',
    ['provider'],
    LONG,
  );
  readonly #uploadBytes = this.#counter('upload_bytes_total', 'Bytes sent from here by uploads', [
    'provider',
  ]);
  readonly #uploadSize = this.#gauge(
    'last_upload_size_bytes',
    'Size of the last successful upload from here',
    ['diskimage', 'provider'],
  );
  readonly #conversionDuration = this.#histogram(
    'conversion_duration_seconds',
    'Duration of the conversions of images here',
    ['format'],
    LONG,
  );
  readonly #requestDuration = this.#histogram(
    'provider_request_duration_seconds',
    'Duration of the requests to a provider from here',
    ['provider', 'request'],
    SHORT,
  );
  readonly #isLeader: Gauge | undefined;
  readonly #buildResults = this.#counter('build_results_total', 'Builds that ended, as seen by the manager', [
    'diskimage',
    'result',
  ]);
  readonly #uploadResults = this.#counter(
    'upload_results_total',
    'Uploads that ended, as seen by the manager',
    ['diskimage', 'provider', 'result'],
  );
  readonly #buildRetries = this.#counter('build_retries_total', 'Builds started after a failed one', [
    'diskimage',
  ]);
  readonly #uploadRetries = this.#counter('upload_retries_total', 'Uploads started after a failed one', [
    'diskimage',
    'provider',
  ]);
  readonly #stepRetries = this.#counter(
    'step_retries_total',
    'Steps of the manager that failed and were retried, such as deletions',
    ['step'],
  );
  readonly #orphans = this.#gauge('orphans', 'Orphans that the last scan of the manager found', [
    'kind',
    'provider',
  ]);
  readonly #orphanDeletions = this.#counter('orphan_deletions_total', 'Attempts to delete an orphan', [
    'kind',
    'provider',
    'result',
  ]);

  #known: Readonly<Record<string, ReadonlySet<string>>> = {};

  /** @param runsManager a manager runs in this process */
  constructor(configuration: ConfiguredNames, { runsManager }: { readonly runsManager: boolean }) {
    void this.configure(configuration);
    if (runsManager)
      this.#isLeader = this.#gauge('manager_leader', 'This manager is the leader (1) or not (0)', []);
  }

  /** Counts an event of a job or a provider. */
  readonly onJobEvent = (event: JobEvent): void => {
    if (!this.#isConfigured(event)) return;
    switch (event.kind) {
      case 'build-started':
        startAtZero(this.#buildJobs, { diskimage: event.diskimage });
        break;
      case 'build-ended': {
        const { diskimage, result, seconds } = event;
        this.#buildJobs.inc({ diskimage, result });
        if (result === 'success') this.#buildDuration.observe({ diskimage }, seconds);
        break;
      }
      case 'upload-started':
        startAtZero(this.#uploadJobs, { diskimage: event.diskimage, provider: event.provider });
        break;
      case 'upload-ended': {
        const { diskimage, provider, result, seconds, size } = event;
        this.#uploadJobs.inc({ diskimage, provider, result });
        if (result !== 'success') break;
        this.#uploadDuration.observe({ provider }, seconds);
        if (size !== undefined) this.#uploadSize.set({ diskimage, provider }, size);
        break;
      }
      case 'sent':
        this.#uploadBytes.inc({ provider: event.provider }, event.bytes);
        break;
      case 'converted':
        this.#conversionDuration.observe({ format: event.format }, event.seconds);
        break;
      case 'requested':
        this.#requestDuration.observe({ provider: event.provider, request: event.request }, event.seconds);
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
          startAtZero(this.#uploadResults, labels);
          this.#uploadRetries.inc(labels, Number(isRetry));
        } else {
          startAtZero(this.#buildResults, { diskimage });
          this.#buildRetries.inc({ diskimage }, Number(isRetry));
        }
        break;
      }
      case 'ended': {
        const { record } = event;
        const { diskimage } = record;
        const state = shownState(record);
        const result = state === 'ready' ? 'success' : state === 'cancelled' ? 'cancelled' : 'failure';
        if ('provider' in record) this.#uploadResults.inc({ diskimage, provider: record.provider, result });
        else this.#buildResults.inc({ diskimage, result });
        break;
      }
      case 'retry':
        this.#stepRetries.inc({ step: event.step });
        break;
      case 'scanned':
        this.#orphans.reset();
        for (const orphan of event.orphans) {
          if (this.#isConfigured(labelsOf(orphan))) this.#orphans.inc(labelsOf(orphan));
        }
        break;
      case 'orphan':
        if (!this.#isConfigured(labelsOf(event.orphan))) break;
        this.#orphanEnded(labelsOf(event.orphan), event.isDeleted);
        break;
      case 'leadership':
        this.#isLeader?.set(Number(event.isLeader));
        if (!event.isLeader) this.#orphans.reset(); // the next leader scans
        break;
    }
  };

  /** Removes the series of disk images and providers that are no longer configured, and ignores their later events. */
  async configure({ diskimages, providers }: ConfiguredNames): Promise<void> {
    this.#known = {
      diskimage: new Set(diskimages.map(({ name }) => name)),
      provider: new Set(['', ...providers.map(({ name }) => name)]),
    };
    for (const metric of this.#metrics) {
      for (const { labels } of (await metric.get()).values) {
        const { le: _, ...own } = labels as Labels;
        if (!this.#isConfigured(own)) metric.remove(own);
      }
    }
  }

  #isConfigured(labels: object): boolean {
    return Object.entries(labels).every(([label, value]) => this.#known[label]?.has(String(value)) ?? true);
  }

  #orphanEnded(labels: { readonly kind: string; readonly provider: string }, isDeleted: boolean): void {
    this.#orphanDeletions.inc({ ...labels, result: isDeleted ? 'success' : 'failure' });
  }

  #counter(name: string, help: string, labelNames: readonly string[]): Counter {
    return this.#add(new Counter(this.#options(name, help, labelNames)));
  }

  #gauge(name: string, help: string, labelNames: readonly string[]): Gauge {
    return this.#add(new Gauge(this.#options(name, help, labelNames)));
  }

  #histogram(
    name: string,
    help: string,
    labelNames: readonly string[],
    buckets: readonly number[],
  ): Histogram {
    return this.#add(new Histogram({ ...this.#options(name, help, labelNames), buckets: [...buckets] }));
  }

  #options(name: string, help: string, labelNames: readonly string[]) {
    return {
      name: `nodepool_builder_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.registry],
    };
  }

  #add<T extends EventMetric>(metric: T): T {
    this.#metrics.push(metric);
    return metric;
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
