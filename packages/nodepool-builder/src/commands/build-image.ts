import { access, mkdir, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type BaseImageBuilder,
  type BuilderServices,
  type Checksums,
  FORMAT_NAMES,
  type ImageFile,
  type ImageFormat,
} from '@nodepool-builder/image-builder';
import { checksumsOf, formatRow, inheritedEnvironment } from '@nodepool-builder/image-builder/module-kit';
import type { Configuration, DiskImageConfiguration } from '../configuration/configuration.ts';
import type { Modules } from '../modules.ts';
import { CommandError } from './command-error.ts';
import { removeChecksumFiles, writeChecksumFiles } from './image-file.ts';
import { JobWorkspace } from './job-workspace.ts';
import type { WithProgress } from './progress-display.ts';

/** One build. */
export interface ImageBuild {
  readonly configuration: Configuration;
  readonly diskimage: DiskImageConfiguration;
  readonly modules: Modules;
  readonly imageId: string;
  /** Empty: the formats of the configuration. */
  readonly formats: readonly ImageFormat[];
  /** Absolute path of the directory for the files. It is made if it is missing. */
  readonly output: string;
  readonly withProgress: WithProgress;
  /** Called with each line of the build log. */
  readonly onLine?: (line: string) => void;
}

/** A file of a new image: the keys of its JSON. */
export interface BuiltFile extends Checksums {
  readonly file: string;
  readonly format: ImageFormat;
  readonly size: number;
}

/** A new image: the keys of its JSON. */
export interface BuiltImage {
  readonly 'image-id': string;
  readonly 'image-name': string;
  readonly builder: string;
  /** ISO 8601. */
  readonly built: string;
  readonly log: string;
  readonly files: readonly BuiltFile[];
}

/**
 * Builds an image without a daemon. Its files appear in the output directory once all of them are complete. Apart from
 * them and the build log, nothing is left, on this host or in a cloud.
 *
 * @throws CommandError if the image is there already
 * @throws ImageError, OpenStackError
 */
export async function buildImage(build: ImageBuild, signal: AbortSignal): Promise<BuiltImage> {
  const { configuration, diskimage, imageId, output, withProgress } = build;
  await mkdir(output, { recursive: true }).catch((error: Error) => {
    throw new CommandError(`cannot make the directory ${output}: ${error.message}; choose another --output`);
  });
  await refuseExisting(output, imageId);
  await JobWorkspace.removeOrphans(output, configuration);
  const workspace = await JobWorkspace.create(output, configuration);
  try {
    const { repository, providers } = workspace;
    const builder = createBuilder(build, providers);
    const image = await withProgress(`build of ${diskimage.name}`, (onProgress) =>
      builder.build({
        imageId,
        repository,
        logDirectory: output,
        logRetention: Number.MAX_SAFE_INTEGER,
        logLimit: configuration.buildLogLimit,
        environment: inheritedEnvironment(process.env, configuration.buildEnvironment),
        largestDisk: configuration.largestDisk,
        signal,
        onProgress,
        ...(build.onLine !== undefined && { onLine: build.onLine }),
      }),
    );
    const wanted = builder.diskimage.formats;
    const made = image.files.map(({ format }) => format);
    const files: ImageFile[] = [];
    for (const format of wanted.length > 0 ? wanted : made) {
      const convert: WithProgress = made.includes(format) ? (_, task) => task(() => {}) : withProgress;
      files.push(
        await convert(`conversion to ${format}`, (onProgress) =>
          repository.file(imageId, [format], {
            largestDisk: configuration.largestDisk,
            signal,
            onProgress,
          }),
        ),
      );
    }
    return {
      'image-id': imageId,
      'image-name': diskimage.name,
      builder: diskimage.builder,
      built: image.builtAt.toISOString(),
      log: join(output, `${imageId}.log`),
      files: await publish(files, image.builtAt, build, signal),
    };
  } finally {
    await workspace.close();
  }
}

function createBuilder(
  { diskimage, formats, modules }: ImageBuild,
  instances: BuilderServices,
): BaseImageBuilder {
  const adapted = { ...diskimage, ...(formats.length > 0 && { formats }) };
  return modules.createBuilder(adapted, {
    instanceProvider: (name) => instances.instanceProvider(name),
    // No daemon would delete an instance that outlives this process.
    instancesOutliveBuilds: false,
  });
}

async function refuseExisting(output: string, imageId: string): Promise<void> {
  for (const format of FORMAT_NAMES) {
    const path = pathOf(output, imageId, format);
    const isThere = await access(path).then(
      () => true,
      () => false,
    );
    if (isThere) throw new CommandError(`${path} exists; choose another --image-id or --output`);
  }
}

/** Moves the files to the output directory, all of them or none, each with its checksums beside it. */
async function publish(
  files: readonly ImageFile[],
  builtAt: Date,
  { output, imageId }: ImageBuild,
  signal: AbortSignal,
): Promise<BuiltFile[]> {
  const published: BuiltFile[] = [];
  try {
    for (const { path, format, size, checksums } of files) {
      const { md5, sha256 } = checksums ?? (await checksumsOf(path, { signal }));
      const file = pathOf(output, imageId, format);
      published.push({ file, format, size, md5, sha256 });
      await writeChecksumFiles(file, { md5, sha256 });
      await utimes(path, builtAt, builtAt);
    }
    signal.throwIfAborted();
    for (const [index, { file }] of published.entries()) await rename(files[index]?.path ?? '', file);
    return published;
  } catch (error) {
    for (const { file } of published) {
      await rm(file, { force: true });
      await removeChecksumFiles(file);
    }
    throw error;
  }
}

function pathOf(output: string, imageId: string, format: ImageFormat): string {
  return join(output, `${imageId}.${formatRow(format).extension}`);
}
