import { tmpdir } from 'node:os';
import {
  type CheckResult,
  ImageError,
  type ImageProvider,
  readImages,
} from '@nodepool-builder/image-builder';
import {
  attempt,
  BUILD_LOG_LIMIT,
  checkDiskImage,
  checkFreeSpace,
  checkImagesDirectory,
  SILENT_LOGGER,
} from '@nodepool-builder/image-builder/internal';
import { diagnoseStore } from '@nodepool-builder/image-manager';
import type { Configuration, DiskImageConfiguration } from '../../configuration/configuration.ts';
import type { LoadedConfiguration } from '../../configuration/load.ts';
import type { Modules } from '../../configuration/modules.ts';
import { Providers } from '../../site/providers.ts';
import { humanPath } from '../../yaml/diagnostic.ts';
import { attestationChecks } from './attestation-check.ts';
import type { Check } from './checks.ts';
import { clockCheck } from './clock-check.ts';
import { jobServerChecks } from './job-server-check.ts';

/** All checks of a configured site. Nothing is sent or run before a check starts. */
export function siteChecks(loaded: LoadedConfiguration): Disposable & { readonly checks: readonly Check[] } {
  const { configuration, plugins } = loaded;
  const { 'images-dir': directory } = configuration;
  const providers = new Providers({
    logger: () => SILENT_LOGGER, // each warning is also the result of a check
    instances: { directory, owner: 'doctor' },
  });
  providers.configure(configuration);
  const largestImage = findLargestImage(directory);
  const checks: readonly Check[] = [
    configurationCheck(loaded),
    ...configuration.diskimages.map((diskimage) => diskImageCheck(diskimage, plugins.modules)),
    ...spaceChecks(configuration, largestImage),
    {
      area: 'images-dir',
      subject: `images-dir ${directory}`,
      run: (signal) => checkImagesDirectory(directory, signal),
    },
    ...jobServerChecks(configuration),
    ...providerChecks(configuration, providers, largestImage),
    ...instanceChecks(configuration, plugins.modules, providers),
    ...attestationChecks(configuration),
    {
      area: 'manager',
      subject: 'store of the manager',
      run: (signal) => diagnoseStore(configuration.manager.store, signal),
    },
    clockCheck(),
  ];
  return { checks, [Symbol.dispose]: () => providers[Symbol.dispose]() };
}

/** Size of the largest image on this host in bytes; undefined if this user can read none. */
async function findLargestImage(directory: string): Promise<number | undefined> {
  try {
    const images = await readImages(directory);
    const sizes = images.map(({ files }) => files.reduce((sum, { size }) => sum + size, 0));
    return sizes.length === 0 ? undefined : Math.max(...sizes);
  } catch (error) {
    if (error instanceof ImageError) return undefined; // the check of the directory reports the reason
    throw error;
  }
}

/** Reports the warnings about the file, and what this host lacks for it. */
function configurationCheck({
  configuration: { file, diskimages, providers },
  warnings,
  hostDiagnostics,
}: LoadedConfiguration): Check {
  return {
    area: 'configuration',
    alsoIn: ['tools'],
    subject: file,
    async *run() {
      const missing = new Set(
        hostDiagnostics.map(({ pointer, reason }) => `${humanPath(pointer)} ${reason}`),
      );
      // Each provider reports errors of its credentials itself.
      const refused = providers.flatMap(({ prepared }) => prepared.error?.message ?? []);
      const found = warnings.filter(
        ({ reason }) => !missing.has(reason) && !refused.some((message) => reason.endsWith(message)),
      );
      for (const { line, severity, reason, remedy } of found) {
        const status = severity === 'warning' ? 'warning' : 'problem';
        yield { subject: `${file}:${line}`, status, message: reason, remedy };
      }
      if (found.length === 0) {
        const message = `is valid; disk images: ${diskimages.length}, providers: ${providers.length}`;
        yield { subject: file, status: 'ok', message };
      }
      for (const { pointer, reason, remedy } of hostDiagnostics) {
        if (/^\/(?:images-dir$|providers\/\d+\/directory$)/.test(pointer)) continue; // other checks cover these
        yield { area: 'tools', subject: humanPath(pointer), status: 'problem', message: reason, remedy };
      }
    },
  };
}

/** Checks what builds of a disk image need: its formats, its validation, its builder. */
function diskImageCheck(diskimage: DiskImageConfiguration, modules: Modules): Check {
  return {
    area: 'sources',
    alsoIn: ['tools', 'rights', 'clock'],
    subject: `disk image ${diskimage.name}`,
    async *run(signal) {
      yield* checkDiskImage(diskimage);
      const { builder, settings } = diskimage;
      const results = modules.builders.get(builder)?.diagnose?.(settings, diskimage, { signal });
      if (results !== undefined) yield* results;
    },
  };
}

function spaceChecks(
  configuration: Configuration,
  largestImage: Promise<number | undefined>,
): readonly Check[] {
  const { 'images-dir': images, 'build-log-dir': logs = images } = configuration;
  const checks: Readonly<Record<string, () => Promise<CheckResult>>> = {
    'images-dir': async () => checkFreeSpace('images-dir', images, await largestImage, 'the largest image'),
    'build-log-dir': () => checkFreeSpace('build-log-dir', logs, BUILD_LOG_LIMIT, 'the longest build log'),
    [tmpdir()]: () => checkFreeSpace(tmpdir(), tmpdir(), undefined, ''),
  };
  return Object.entries(checks).map(([name, check]) => ({
    area: 'disk',
    subject: `free space in ${name}`,
    run: () => [check()],
  }));
}

/** Runs the checks of each image provider, or lists the images of a provider without checks. */
function providerChecks(
  configuration: Configuration,
  providers: Providers,
  largestImage: Promise<number | undefined>,
): readonly Check[] {
  return configuration.providers.map(({ name }) => ({
    area: 'providers',
    alsoIn: ['disk', 'clock'],
    subject: `provider ${name}`,
    async *run(signal) {
      const { provider } = providers.get(name) ?? {};
      if (provider === undefined) return;
      const options = { signal, largestImage: await largestImage };
      yield* provider.diagnose?.(options) ?? listImages(provider, signal);
    },
  }));
}

async function* listImages(provider: ImageProvider, signal: AbortSignal): AsyncGenerator<CheckResult> {
  const subject = `provider ${provider.name}`;
  const { value, problem } = await attempt(subject, signal, () => provider.list({ signal }));
  yield problem ?? { subject, status: 'ok', message: `responds; images: ${value?.length ?? 0}` };
}

/** Checks the providers on whose instances disk images are built. */
function instanceChecks(
  { diskimages }: Configuration,
  modules: Modules,
  providers: Providers,
): readonly Check[] {
  const used = diskimages.flatMap(
    ({ builder, settings }) => modules.builders.get(builder)?.describe?.(settings).snapshotProvider ?? [],
  );
  return [...new Set(used)].map((name) => ({
    area: 'providers',
    alsoIn: ['tools', 'rights', 'clock'],
    subject: `instances of provider ${name}`,
    run: (signal) => providers.instanceProvider(name).diagnose?.({ signal }) ?? [],
  }));
}
