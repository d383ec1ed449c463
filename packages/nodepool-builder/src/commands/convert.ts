import { rename, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { FORMAT_NAMES, type ImageFormat, type SettingsOf } from '@nodepool-builder/image-builder';
import {
  formatRow,
  isConvertible,
  syncToDisk,
  unlessMissing,
} from '@nodepool-builder/image-builder/internal';
import { type Command, Option } from 'commander';
import type { Modules } from '../configuration/modules.ts';
import { CommandError, type JsonOptions, printResult, usageError } from '../terms/command-error.ts';
import { recordSchema } from '../terms/record-schema.ts';
import {
  FILE_PROPERTIES,
  FORMAT,
  inspectFile,
  removeChecksumFiles,
  type SourceFile,
  sourceFile,
  withConvertedFile,
  writeChecksumFiles,
} from './image-file.ts';
import { loadOptionalConfiguration, optionalConfigOption } from './job-provider.ts';
import { exampleOf, jsonFileOption } from './options.ts';
import { withoutProgress, withProgress } from './progress.ts';
import { untilStopSignal } from './stop-signal.ts';

interface ConvertOptions extends JsonOptions {
  readonly config?: string;
  readonly format: ImageFormat;
  readonly sourceFormat?: ImageFormat;
  readonly output?: string;
}

/** `convert FILE --format F`: prints the path of the new file. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('convert')
    .description(
      'Converts an image file, and prints the path of the new file. The file appears once it is complete and checked; ' +
        'an existing file is replaced. Its digests are written to FILE.md5 and FILE.sha256. As in a builder, the ' +
        'image must be in the format of its extension or --source-format, must not refer to other files, such as a ' +
        'backing file, and its disk must not exceed virtual-size-limit of the configuration file, 256 GiB by ' +
        'default. "upload" converts by itself if the provider needs another format. SIGTERM and SIGINT stop it.',
    )
    .argument('<file>', 'the image')
    .addOption(
      new Option('--format <format>', 'format of the new file')
        .choices(FORMAT_NAMES.filter(isConvertible))
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--source-format <format>', 'format of the image (default: by its extension)').choices(
        FORMAT_NAMES,
      ),
    )
    .option('--output <path>', 'the new file, or a directory for it (default: next to the image)')
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON: path, format, size and digests of the new file, and the image')
    .addOption(jsonFileOption())
    .addHelpText('after', exampleOf('convert debian.raw --format qcow2 --output images/debian.qcow2'))
    .action(async (file: string, options: ConvertOptions) => convert(file, options, await modules()));
}

/** Schema of `convert --json`: the new file. */
export const CONVERTED_FILE = recordSchema({
  ...FILE_PROPERTIES,
  source: {
    ...recordSchema({ file: FILE_PROPERTIES.file, format: FORMAT, size: FILE_PROPERTIES.size }),
    description: 'Path (`file`), `format` and `size` of the image.',
  },
});

async function convert(file: string, options: ConvertOptions, modules: Modules): Promise<void> {
  const { config, format, sourceFormat, output, json } = options;
  const source = await sourceFile(file, '--source-format', sourceFormat);
  const { path } = source;
  const target = await targetOf(path, format, output);
  refuseConversion(source, format, target);
  const { size } = await inspectFile(source);
  const maxDiskSize = (await loadOptionalConfiguration(config, modules))?.maxDiskSize;
  const settings = {
    directory: dirname(target),
    maxDiskSize,
    withProgress: json ? withoutProgress : withProgress,
  };
  const converted = await untilStopSignal((signal) =>
    withConvertedFile(source, format, settings, signal, async (made) => {
      await syncToDisk(made.path); // a power failure must not leave an empty file
      signal.throwIfAborted();
      await removeChecksumFiles(target); // they would not match until the new ones are written
      await rename(made.path, target);
      await writeChecksumFiles(target, made.checksums);
      return { file: target, format, size: made.size, ...made.checksums };
    }),
  );
  const result: SettingsOf<typeof CONVERTED_FILE> = {
    ...converted,
    source: { file: path, format: source.format, size },
  };
  await printResult(result, [target], options);
}

async function targetOf(source: string, format: ImageFormat, output = dirname(source)): Promise<string> {
  const isDirectory = (await unlessMissing(stat(output)))?.isDirectory() ?? false;
  const name = `${basename(source, extname(source))}.${formatRow(format).extension}`;
  return resolve(isDirectory ? join(output, name) : output);
}

/** @throws CommandError */
function refuseConversion({ path, format: from }: SourceFile, to: ImageFormat, target: string): void {
  if (from === to) throw usageError(`${path} is already ${to}; choose another --format`);
  if (!isConvertible(from)) {
    throw new CommandError(
      `${path} is ${from}, which qemu-img cannot convert; build the image in another format`,
    );
  }
  if (target === path) throw usageError(`${path} is the image itself; choose another --output`);
}
