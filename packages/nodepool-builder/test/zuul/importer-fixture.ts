import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { JobFailedError, JobLostError } from '@nodepool-builder/gearman-node';
import { type BuildSource, type ChosenBuild, SeenBuilds } from '@nodepool-builder/image-builder/zuul';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import type { ZuulDouble } from '../../../../test/fixtures/zuul/zuul-double.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { ApiFixture, ON, QUERY, startZuul } from '../../../image-builder/test/zuul/api-fixture.ts';
import { BuildImporter, type BuildImporterOptions } from '../../src/zuul/build-importer.ts';
import type { ImageBuilds, WantedImage } from '../../src/zuul/image-builds.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

/** What is the image `noble`. */
export const SOURCE: BuildSource = {
  query: QUERY,
  rules: { imageName: 'noble', artifacts: [{ format: 'qcow2', type: 'image-qcow' }] },
};

/** Builders that take no time: what they made, they offer. */
export class FakeBuilders implements ImageBuilds {
  readonly asked: WantedImage[] = [];
  readonly offered = new Set<string>();
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
  }

  get built(): readonly string[] {
    return this.asked.map(({ uuid }) => uuid);
  }
}

export function jobFailed(): Error {
  return new JobFailedError('image-build:noble', 'H:1');
}

export function jobLost(): Error {
  return new JobLostError('image-build:noble', 'H:1');
}

/** An importer of `noble`, and all that it works with. */
export class ImporterFixture {
  readonly zuul: ZuulDouble;
  readonly builders = new FakeBuilders();
  readonly logger = new RecordingLogger();
  /** Uuids of builds whose artifacts are gone. */
  readonly gone = new Set<string>();
  readonly #path: string;
  #importer: BuildImporter | undefined;

  private constructor(zuul: ZuulDouble, path: string) {
    this.zuul = zuul;
    this.#path = path;
  }

  static async create(t: TestContext): Promise<ImporterFixture> {
    return new ImporterFixture(await startZuul(t), join(temporaryDirectory(t), 'noble.json'));
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
    const options: BuildImporterOptions = {
      name: 'noble',
      api: new ApiFixture(this.zuul).api,
      source: SOURCE,
      seen: await SeenBuilds.open(this.#path),
      builds: this.builders,
      isGone: async ({ build }: ChosenBuild) => this.gone.has(build.uuid),
      logger: this.logger,
    };
    return new BuildImporter(options);
  }
}

export function uuidsOf(...rows: readonly BuildRow[]): readonly string[] {
  return rows.map(({ uuid }) => uuid);
}
