import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  FinishedBuild,
  Image,
  ImageAttester,
  Material,
  OperationOptions,
} from '@nodepool-builder/image-builder';
import {
  inheritedEnvironment,
  isImageFormat,
  type RestoredInputs,
} from '@nodepool-builder/image-builder/module-kit';
import type { BuildFacts, FoundPackages } from '@nodepool-builder/provenance';
import type { Configuration } from '../configuration/configuration.ts';
import type { Modules } from '../configuration/modules.ts';
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
): Promise<{ readonly image: Image; readonly packages: FoundPackages } & Omit<UsedInputs, 'diskimage'>> {
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
  const collector = new BuildCollector(
    recorded.billOfMaterials !== undefined || recorded.withoutBillOfMaterials !== undefined,
  );
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
  const { materials, environment: variablesOfBuild, packages } = collector;
  return { image, packages, materials, environment: variablesOfBuild, restored, reasons };

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

/** Collects the materials and the packages of a build, and signs nothing. */
class BuildCollector implements ImageAttester {
  readonly secretFiles: readonly string[] = [];
  readonly wantsPackages: boolean;
  packages: FoundPackages = { reason: 'nothing asked the build for its packages' };
  materials: readonly Material[] = [];
  environment: Readonly<Record<string, string>> = {};

  constructor(wantsPackages: boolean) {
    this.wantsPackages = wantsPackages;
  }

  async check(): Promise<void> {}

  async attestBuild(build: FinishedBuild, options: OperationOptions = {}): Promise<void> {
    const { materials, environment, directory, manifest } = build;
    this.materials = materials;
    this.environment = environment;
    if (!this.wantsPackages) return;
    const { readPackages } = await import('@nodepool-builder/provenance');
    this.packages = await readPackages(directory, manifest['image-id'], options);
  }

  async attestConversion(): Promise<void> {}
}
