import type { TestContext } from 'node:test';
import type { BuilderSite, BuildRequest } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { QUERY } from '../../../../test/fixtures/zuul/start-zuul.ts';
import type { ChosenBuild, ImageSource } from '../../src/builds/find-build.ts';
import { EMPTY_HISTORY, ProcessedBuilds, type ProcessedHistory } from '../../src/builds/processed-builds.ts';
import { BuildImporter, type BuildImporterOptions } from '../../src/polling/build-importer.ts';
import { ON } from '../api/api-fixture.ts';
import { ManualClock } from '../api/manual-clock.ts';

/** Settings of the image `noble`. */
const SOURCE: ImageSource = {
  ...QUERY,
  pipelines: ['periodic', 'post', 'promote'],
  name: 'noble',
  artifacts: [{ format: 'qcow2', type: 'image-qcow' }],
  'require-sha256': false,
};

/** Builders that build at once, and offer each image that they have built. */
export class FakeBuilders implements Pick<BuilderSite, 'isOffered' | 'requestBuild'> {
  readonly asked: BuildRequest[] = [];
  readonly offered = new Set<string>();
  /** Image-ids in the order of the builds. */
  readonly built: string[] = [];
  /** Errors of the next builds. */
  readonly failures: Error[] = [];
  /** Errors that leave the result of the next builds unknown. */
  readonly losses: Error[] = [];
  /** Called before each build. */
  onJob: () => void = () => {};

  async isOffered(imageId: string): Promise<boolean> {
    return this.offered.has(imageId);
  }

  async requestBuild(request: BuildRequest): Promise<Error | undefined> {
    this.asked.push(request);
    this.onJob();
    const loss = this.losses.shift();
    if (loss !== undefined) throw loss;
    const failure = this.failures.shift();
    if (failure !== undefined) return failure;
    this.offered.add(request.imageId);
    this.built.push(request.imageId);
    return undefined;
  }

  /** UUIDs of the builds of all jobs. */
  get askedFor(): readonly string[] {
    return this.asked.map(({ key }) => key);
  }
}

export function jobFailed(): Error {
  return new Error('the job failed');
}

export function jobLost(): Error {
  return new Error('the job was lost');
}

/** Processed builds without a file, whose writes take most of the time of a long test. */
export class DisklessProcessedBuilds {
  history: ProcessedHistory = EMPTY_HISTORY;

  async write(history: ProcessedHistory): Promise<void> {
    this.history = history;
  }
}

/** Settings of an {@link ImporterFixture}. */
interface FixtureOptions {
  readonly builders?: FakeBuilders;
  /** Processed builds. Default: a file that is read again after each restart. */
  readonly processed?: BuildImporterOptions['processed'];
}

/** An importer of `noble` with fakes. */
export class ImporterFixture {
  readonly builders: FakeBuilders;
  readonly logger = new RecordingLogger();
  readonly clock = new ManualClock();
  /** UUIDs of builds with expired artifacts. */
  readonly expired = new Set<string>();
  /** Error of the check whether artifacts have expired. */
  unknown: Error | undefined;
  readonly #api: BuildImporterOptions['api'];
  readonly #openProcessed: () => Promise<BuildImporterOptions['processed']>;
  #importer: BuildImporter | undefined;

  constructor(
    t: TestContext,
    api: BuildImporterOptions['api'],
    { builders, processed }: FixtureOptions = {},
  ) {
    const directory = temporaryDirectory(t);
    this.#api = api;
    this.#openProcessed = async () => processed ?? (await ProcessedBuilds.open(directory, 'noble'));
    this.builders = builders ?? new FakeBuilders();
  }

  async poll(): Promise<void> {
    this.#importer ??= await this.#open();
    await this.#importer.run(ON);
  }

  /** Continues like another process, with the files on disk. */
  restart(): void {
    this.#importer = undefined;
  }

  async #open(): Promise<BuildImporter> {
    return new BuildImporter({
      api: this.#api,
      source: SOURCE,
      processed: await this.#openProcessed(),
      site: this.builders,
      isExpired: async ({ build }: ChosenBuild) => {
        if (this.unknown !== undefined) throw this.unknown;
        return this.expired.has(build.uuid);
      },
      logger: this.logger,
      clock: this.clock,
      random: () => 0,
    });
  }
}

export function uuidsOf(...rows: readonly BuildRow[]): readonly string[] {
  return rows.map(({ uuid }) => uuid);
}
