import { existsSync } from 'node:fs';
import { rename, rm, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  FORMAT_NAMES,
  type ImageFile,
  type ImageFormat,
  type SettingsOf,
} from '@nodepool-builder/image-builder';
import {
  checkImageId,
  checksumsOf,
  formatRow,
  inheritedEnvironment,
  makeDirectory,
} from '@nodepool-builder/image-builder/internal';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { SiteAttestation } from '../attestation/site-attestation.ts';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import {
  CommandError,
  failing,
  findByName,
  type JsonOptions,
  printResult,
  STANDARD_ERROR_LOGGER,
} from '../terms/command-error.ts';
import { recordSchema, TEXT, TIME } from '../terms/record-schema.ts';
import {
  FILE_PROPERTIES,
  type FileDescription,
  removeChecksumFiles,
  writeChecksumFiles,
} from './image-file.ts';
import { withWorkspace } from './job-workspace.ts';
import { newImageId } from './jobs.ts';
import { configOption, exampleOf, jsonFileOption, secureOption } from './options.ts';
import { withoutProgress, withProgress } from './progress.ts';
import { untilStopSignal } from './stop-signal.ts';

interface BuildOptions extends JsonOptions {
  readonly config: string;
  readonly secure?: string;
  readonly output: string;
  readonly imageId?: string;
  readonly format?: readonly ImageFormat[];
  readonly verbose?: true;
}

/** `build NAME`: builds an image without a daemon, and prints the paths of its files. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('build')
    .description(
      'Builds an image of the configuration file in this process, with any builder, and prints the path of each ' +
        'of its files. The digests of each file are written to FILE.md5 and FILE.sha256; the build log is ' +
        'IMAGE-ID.log; with attestation in the file, attestations and the bill of materials are in IMAGE-ID.d. It ' +
        'needs no daemon and no Gearman, and does not use images-dir. SIGTERM and SIGINT stop it. Whether it ' +
        'succeeds or fails, it leaves nothing else: no process, mount, instance or snapshot. If it is killed, the ' +
        'next build with the same --output cleans up, and "reap" removes its orphans in a cloud.',
    )
    .argument('<diskimage>', 'name of the disk image, as in diskimages or zuul-images')
    .addOption(configOption())
    .addOption(secureOption())
    .addOption(
      new Option('--output <directory>', 'directory to write the files to').default(
        '.',
        'the current directory',
      ),
    )
    .option(
      '--image-id <id>',
      'id of the image: the files are ID.FORMAT (default: name, time and random characters)',
    )
    .addOption(
      new Option(
        '--format <format>',
        'a format to build; repeat it for more (default: the formats of the configuration)',
      )
        .choices(FORMAT_NAMES)
        .argParser(addFormat),
    )
    .option('--verbose', 'print the build log on standard error instead of the progress')
    .option(
      '--json',
      'print JSON: image-id, build time, log, and path, format, size and digests of each file',
    )
    .addOption(jsonFileOption())
    .addHelpText(
      'after',
      exampleOf(
        'build debian -c nodepool.yaml --output images --format qcow2',
        'upload "$(nodepool-builder build debian --format qcow2)" --provider ci --name debian',
      ),
    )
    .action(async (name: string, options: BuildOptions) => {
      const built = await untilStopSignal(async (signal) => build(name, options, await modules(), signal));
      await printResult(
        built,
        built.files.map(({ file }) => file),
        options,
      );
    });
}

function addFormat(format: string, formats: readonly ImageFormat[] = []): readonly ImageFormat[] {
  const known = FORMAT_NAMES.find((name) => name === format);
  if (known === undefined) {
    throw new InvalidArgumentError(`Allowed choices are ${FORMAT_NAMES.join(', ')}.`);
  }
  return formats.includes(known) ? formats : [...formats, known];
}

/** Schema of `build --json`: a new image. */
export const BUILT_IMAGE = recordSchema({
  'image-id': { ...TEXT, description: 'Id of the image.' },
  'image-name': { ...TEXT, description: 'Name of the disk image.' },
  builder: { ...TEXT, description: '`diskimages[].builder`.' },
  built: { ...TIME, description: 'Time of the build.' },
  log: { ...TEXT, description: 'Path of the build log.' },
  files: {
    type: 'array',
    items: recordSchema(FILE_PROPERTIES),
    description: 'Path (`file`), `format`, `size`, `md5` and `sha256` of each file.',
  },
});

type BuiltImage = SettingsOf<typeof BUILT_IMAGE>;

/**
 * Builds an image. Its files appear in the output directory once all of them are complete. Apart from them and the
 * build log, nothing is left, on this host or in a cloud.
 *
 * @throws CommandError if the disk image is unknown, or the image exists
 * @throws ImageError, CloudError
 */
async function build(
  name: string,
  { config, secure, format: formats = [], json, verbose, ...options }: BuildOptions,
  modules: Modules,
  signal: AbortSignal,
): Promise<BuiltImage> {
  const imageId = options.imageId ?? newImageId(name, new Date());
  checkImageId(imageId);
  const { configuration, plugins } = await loadConfiguration(config, { modules, secure });
  const diskimage = findByName(configuration.diskimages, 'disk image', name, configuration.file);
  const output = resolve(options.output);
  const unwritable = failing(`cannot make the directory ${output}`, 'choose another --output');
  await makeDirectory(output, 0o777).catch(unwritable);
  const pathOf = (format: ImageFormat): string => join(output, `${imageId}.${formatRow(format).extension}`);
  const existing = FORMAT_NAMES.map(pathOf).find((path) => existsSync(path));
  if (existing !== undefined) {
    throw new CommandError(`${existing} exists; choose another --image-id or --output`, 'refused');
  }
  const withDisplay = json || verbose ? withoutProgress : withProgress;
  const { maxDiskSize } = configuration;
  const attestation = new SiteAttestation(configuration, STANDARD_ERROR_LOGGER);
  const attester = await attestation.attester();
  await attester?.check();
  return await withWorkspace(output, configuration, async ({ repository, providers }) => {
    const builder = plugins.modules.createBuilder(
      { ...diskimage, ...(formats.length > 0 && { formats }) },
      {
        instanceProvider: (provider) => providers.instanceProvider(provider),
        chooseImage: providers.chooseImage.bind(providers),
        checkAttestations: attestation.checkFile.bind(attestation),
        instancesOutliveBuilds: false, // no daemon would delete an instance that outlives this process
      },
    );
    const image = await withDisplay(`build of ${name}`, (onProgress) =>
      builder.build({
        imageId,
        repository,
        logDirectory: output,
        logRetention: Number.MAX_SAFE_INTEGER,
        environment: inheritedEnvironment(process.env, configuration['build-environment']),
        maxDiskSize,
        signal,
        onProgress,
        ...(attester && { attester }),
        ...(verbose && { onLine: (line: string) => console.error(line) }),
      }),
    );
    const made = image.files.map(({ format }) => format);
    const wanted = builder.diskimage.formats.length > 0 ? builder.diskimage.formats : made;
    const files: ImageFile[] = [];
    for (const format of wanted) {
      const withConversion = made.includes(format) ? withoutProgress : withDisplay;
      const file = await withConversion(`conversion to ${format}`, (onProgress) =>
        repository.file(imageId, [format], { maxDiskSize, signal, onProgress, attester }),
      );
      files.push(file);
    }
    return {
      'image-id': imageId,
      'image-name': name,
      builder: diskimage.builder,
      built: image.builtAt.toISOString(),
      log: join(output, `${imageId}.log`),
      files: await publish(files, image.builtAt, pathOf, signal, async () => {
        if (attester === undefined) return;
        await rename(join(repository.directory, `${imageId}.d`), join(output, `${imageId}.d`));
      }),
    };
  });
}

/**
 * Moves the files to their paths, all of them or none, each with its checksum files.
 *
 * @param first moves the image's other files before its disk files appear
 */
async function publish(
  files: readonly ImageFile[],
  builtAt: Date,
  pathOf: (format: ImageFormat) => string,
  signal: AbortSignal,
  first: () => Promise<void>,
): Promise<FileDescription[]> {
  const published: FileDescription[] = [];
  try {
    for (const { path, format, size, checksums } of files) {
      const { md5, sha256 } = checksums ?? (await checksumsOf(path, { signal }));
      const file = pathOf(format);
      published.push({ file, format, size, md5, sha256 });
      await writeChecksumFiles(file, { md5, sha256 });
      await utimes(path, builtAt, builtAt);
    }
    signal.throwIfAborted();
    await first();
    for (const { path, format } of files) await rename(path, pathOf(format));
    return published;
  } catch (error) {
    for (const { file } of published) {
      await rm(file, { force: true });
      await removeChecksumFiles(file);
    }
    throw error;
  }
}
