import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { JobFailedError, JobLostError } from '@nodepool-builder/gearman-node';
import {
  type BuildMemory,
  type BuildSource,
  type ChosenBuild,
  NOTHING_SEEN,
  SeenBuilds,
} from '@nodepool-builder/zuul-images';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { withGivenUp, withTaken } from '../../../zuul-images/src/builds/build-memory.ts';
import { ON, QUERY } from '../../../zuul-images/test/api/api-fixture.ts';
import { BuildImporter, type BuildImporterOptions } from '../../src/zuul/build-importer.ts';
import type { ImageBuilds, WantedImage } from '../../src/zuul/image-builds.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

/** What is the image `noble`. */
const SOURCE: BuildSource = {
  query: { ...QUERY, pipelines: ['periodic', 'post', 'promote'] },
  rules: { imageName: 'noble', artifacts: [{ format: 'qcow2', type: 'image-qcow' }] },
};

/** Builders that take no time: what they made, they offer. */
export class FakeBuilders implements ImageBuilds {
  readonly asked: WantedImage[] = [];
  readonly offered = new Set<string>();
  /** Image-ids, in the order in which they came about. */
  readonly built: string[] = [];
  /** How the next jobs end, unless well. */
  readonly failures: Error[] = [];
  /** Called when a job is asked for, before it is done. */
  onJob: () => void = () => {};

  async isOffered(imageId: string): Promise<boolean> {
    return this.offered.has(imageId);
  }

  async build(image: WantedImage): Promise<void> {
    this.asked.push(image);
    this.onJob();
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    this.offered.add(image.imageId);
    this.built.push(image.imageId);
  }

  /** Uuids of the builds of all jobs. */
  get askedFor(): readonly string[] {
    return this.asked.map(({ uuid }) => uuid);
  }
}

export function jobFailed(): Error {
  return new JobFailedError('image-build:noble', 'H:1');
}

export function jobLost(): Error {
  return new JobLostError('image-build:noble', 'H:1');
}

/** What is remembered without a disk, whose writes take most of the time of many. */
export class DisklessSeenBuilds {
  memory: BuildMemory = NOTHING_SEEN;

  async taken(chosen: ChosenBuild): Promise<void> {
    this.memory = withTaken(this.memory, chosen);
  }

  async givenUp(chosen: ChosenBuild): Promise<void> {
    this.memory = withGivenUp(this.memory, chosen);
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
    this.#openSeen = async () => seen ?? (await SeenBuilds.open(path));
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
      builds: this.builders,
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
