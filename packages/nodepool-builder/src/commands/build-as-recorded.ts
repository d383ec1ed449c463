import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { FinishedBuild, Image, ImageAttester, Material } from '@nodepool-builder/image-builder';
import {
  inheritedEnvironment,
  isImageFormat,
  type RestoredInputs,
} from '@nodepool-builder/image-builder/module-kit';
import type { BuildFacts } from '@nodepool-builder/provenance';
import type { Configuration } from '../configuration/configuration.ts';
import type { Modules } from '../modules.ts';
import type { UsedInputs } from './changed-inputs.ts';
import type { JobWorkspace } from './job-workspace.ts';
import type { WithProgress } from './progress.ts';
import type { RecordedDiskImage } from './recorded-inputs.ts';

/** Surroundings of a second build. */
interface RebuildSite {
  readonly configuration: Configuration;
  readonly modules: Modules;
  /** Directory for the log. */
  readonly output: string;
  readonly show: WithProgress;
  readonly signal: AbortSignal;
}

/** Builds an image a second time in a workspace, from the recorded inputs as far as its builder restores them. */
export async function buildAsRecorded(
  imageId: string,
  recorded: BuildFacts,
  diskimage: RecordedDiskImage,
  { repository, providers }: JobWorkspace,
  { configuration, modules, output, show, signal }: RebuildSite,
): Promise<{ readonly image: Image } & Omit<UsedInputs, 'diskimage'>> {
  const { name, module, envVars } = diskimage;
  const environment = inheritedEnvironment(process.env, configuration['build-environment']);
  const { variables, reasons } = await restoreInputs();
  const builder = modules.createBuilder(
    { ...diskimage, formats: formatsOf(imageId, recorded), envVars: { ...envVars, ...variables } },
    {
      instanceProvider: (provider) => providers.instanceProvider(provider),
      chooseImage: providers.chooseImage.bind(providers),
      instancesOutliveBuilds: false, // no daemon would delete an instance that outlives this process
    },
  );
  const collector = new MaterialCollector();
  const image = await show(`build of ${name}`, (onProgress) =>
    builder.build({
      imageId, // as before: builds may put it into the image
      repository,
      logDirectory: output,
      logRetention: Number.MAX_SAFE_INTEGER,
      logLimit: configuration.buildLogLimit,
      environment,
      largestDisk: configuration.largestDisk,
      attester: collector,
      signal,
      onProgress,
    }),
  );
  const restored = new Set(Object.keys(variables));
  return { image, materials: collector.materials, environment: collector.environment, restored, reasons };

  async function restoreInputs(): Promise<RestoredInputs> {
    const restore = module.restoreInputs?.bind(module);
    if (restore === undefined) return { variables: {}, reasons: new Map() };
    const directory = join(repository.directory, '.nodepool-builder', 'recorded-inputs');
    await mkdir(directory, { mode: 0o700 });
    return await show(`recorded inputs of ${name}`, () =>
      restore(recorded.materials, diskimage, { directory, environment, signal }),
    );
  }
}

/** Formats that the build made. */
function formatsOf(imageId: string, { subjects }: BuildFacts): RecordedDiskImage['formats'] {
  return subjects.flatMap(({ name }) => {
    const format = name.startsWith(`${imageId}.`) ? name.slice(imageId.length + 1) : '';
    return isImageFormat(format) ? [format] : [];
  });
}

/** Collects what a build used, and signs nothing. */
class MaterialCollector implements ImageAttester {
  readonly secretFiles: readonly string[] = [];
  materials: readonly Material[] = [];
  environment: Readonly<Record<string, string>> = {};

  async check(): Promise<void> {}

  async attestBuild({ materials, environment }: FinishedBuild): Promise<void> {
    this.materials = materials;
    this.environment = environment;
  }

  async attestConversion(): Promise<void> {}
}
