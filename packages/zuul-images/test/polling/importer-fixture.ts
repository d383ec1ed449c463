import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { BuilderSite } from '@nodepool-builder/image-builder';
import type { BuildRequest } from '@nodepool-builder/image-builder/module-kit';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { temporaryDirectory } from '../../../nodepool-builder/test/temporary-directory.ts';
import type { ChosenBuild } from '../../src/builds/choose-build.ts';
import type { BuildSource } from '../../src/builds/find-build.ts';
import { ProcessedBuilds } from '../../src/builds/processed-builds.ts';
import {
  EMPTY_HISTORY,
  type ProcessedHistory,
  withGivenUp,
  withTaken,
} from '../../src/builds/processed-history.ts';
import { BuildImporter, type BuildImporterOptions } from '../../src/polling/build-importer.ts';
import { ON, QUERY } from '../api/api-fixture.ts';

/** What is the image `noble`. */
const SOURCE: BuildSource = {
  query: { ...QUERY, pipelines: ['periodic', 'post', 'promote'] },
  rules: { imageName: 'noble', artifacts: [{ format: 'qcow2', type: 'image-qcow' }] },
};

/** Builders that take no time: they offer each image that they have built. */
export class FakeBuilders implements Pick<BuilderSite, 'isOffered' | 'requestBuild'> {
  readonly asked: BuildRequest[] = [];
  readonly offered = new Set<string>();
  /** Image-ids, in the order in which they came about. */
  readonly built: string[] = [];
  /** Errors of the next builds. */
  readonly failures: Error[] = [];
  /** Errors that leave the result of the next builds unknown. */
  readonly losses: Error[] = [];
  /** Called when a job is asked for, before it is done. */
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

  /** Uuids of the builds of all jobs. */
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

/** What is remembered without a disk, whose writes take most of the time of many. */
export class DisklessProcessedBuilds {
  history: ProcessedHistory = EMPTY_HISTORY;

  async taken(chosen: ChosenBuild): Promise<void> {
    this.history = withTaken(this.history, chosen);
  }

  async givenUp(chosen: ChosenBuild): Promise<void> {
    this.history = withGivenUp(this.history, chosen);
  }
}

/** Settings of an {@link ImporterFixture}. */
interface FixtureOptions {
  readonly builders?: FakeBuilders;
  /** Default: a file that is read anew after each restart. */
  readonly seen?: BuildImporterOptions['seen'];
}

/** An importer of `noble`, and all that it works with. */
export class ImporterFixture {
  readonly builders: FakeBuilders;
  readonly logger = new RecordingLogger();
  /** Uuids of builds whose artifacts are gone. */
  readonly gone = new Set<string>();
  /** Why it cannot be asked what is gone. */
  unknown: Error | undefined;
  readonly #api: BuildImporterOptions['api'];
  readonly #openSeen: () => Promise<BuildImporterOptions['seen']>;
  #importer: BuildImporter | undefined;

  constructor(t: TestContext, api: BuildImporterOptions['api'], { builders, seen }: FixtureOptions = {}) {
    const path = join(temporaryDirectory(t), 'noble.json');
    this.#api = api;
    this.#openSeen = async () => seen ?? (await ProcessedBuilds.open(path));
    this.builders = builders ?? new FakeBuilders();
  }

  async look(): Promise<void> {
    this.#importer ??= await this.#open();
    await this.#importer.run(ON);
  }

  /** As another process that knows what this one left on disk. */
  restart(): void {
    this.#importer = undefined;
  }

  async #open(): Promise<BuildImporter> {
    return new BuildImporter({
      name: 'noble',
      api: this.#api,
      source: SOURCE,
      seen: await this.#openSeen(),
      fleet: this.builders,
      isGone: async ({ build }: ChosenBuild) => {
        if (this.unknown !== undefined) throw this.unknown;
        return this.gone.has(build.uuid);
      },
      logger: this.logger,
    });
  }
}

export function uuidsOf(...rows: readonly BuildRow[]): readonly string[] {
  return rows.map(({ uuid }) => uuid);
}
