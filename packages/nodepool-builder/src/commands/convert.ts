import { open, realpath, rename, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import {
  type Checksums,
  FORMAT_NAMES,
  type ImageFile,
  type ImageFormat,
} from '@nodepool-builder/image-builder';
import { formatRow, isConvertible, unlessMissing } from '@nodepool-builder/image-builder/module-kit';
import { type Command, Option } from 'commander';
import type { Modules } from '../modules.ts';
import type { BuiltFile } from './build-image.ts';
import { CommandError } from './command-error.ts';
import {
  formatOfFile,
  inspectFile,
  removeChecksumFiles,
  withConvertedFile,
  writeChecksumFiles,
} from './image-file.ts';
import { type JsonOptions, jsonFileOption, writeJson } from './json-output.ts';
import { withoutProgress, withProgress } from './progress-display.ts';
import { loadOptionalConfiguration, optionalConfigOption } from './provider-option.ts';
import { untilStopSignal } from './stop-signal.ts';
import type { SourceFile } from './upload-file.ts';

interface ConvertOptions extends JsonOptions {
  readonly config?: string;
  readonly format: ImageFormat;
  readonly sourceFormat?: ImageFormat;
  readonly output?: string;
}

/** `convert FILE --format F`: prints the path of the new file. */
export function registerConvert(program: Command, modules: Modules): void {
  program
    .command('convert')
    .summary('convert an image file to another format')
    .description(
      'Converts an image file, and prints the path of the new file. The file appears once it is complete and checked; ' +
        'one of that name is replaced. Its digests lie beside it, in FILE.md5 and FILE.sha256. As in a builder, the ' +
        'image must be in the format that its name or --source-format says, must not refer to other files, such as a ' +
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
    .option('--output <path>', 'the new file, or a directory for it (default: beside the image)')
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON: path, format, size and digests of the new file, and the image')
    .addOption(jsonFileOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ nodepool-builder convert debian.raw --format qcow2 --output images/debian.qcow2',
    )
    .action(async (file: string, options: ConvertOptions) => {
      const converted = await convert(file, options, modules);
      await writeJson(converted, options);
      if (options.json !== true) console.log(converted.file);
    });
}

async function convert(
  file: string,
  { config, format, sourceFormat, output, json }: ConvertOptions,
  modules: Modules,
): Promise<BuiltFile & { readonly source: Omit<SourceFile, keyof Checksums> }> {
  const path = await realpath(file).catch(() => resolve(file)); // a missing file is reported below
  const source = { path, format: sourceFormat ?? formatOfFile(file, '--source-format') };
  const target = await targetOf(path, format, output);
  refuseConversion(source, format, target);
  const { size } = await inspectFile(source);
  const largestDisk = (await loadOptionalConfiguration(config, modules))?.largestDisk;
  const settings = {
    directory: dirname(target),
    largestDisk,
    withProgress: json === true ? withoutProgress : withProgress,
  };
  return await untilStopSignal((signal) =>
    withConvertedFile(source, format, settings, signal, async (converted) => {
      await syncFile(converted.path);
      signal.throwIfAborted();
      await removeChecksumFiles(target); // they would not match meanwhile
      await rename(converted.path, target);
      await writeChecksumFiles(target, converted.checksums);
      const made = { file: target, format, size: converted.size, ...converted.checksums };
      return { ...made, source: { file: path, format: source.format, size } };
    }),
  );
}

async function targetOf(source: string, format: ImageFormat, output = dirname(source)): Promise<string> {
  const isDirectory = (await unlessMissing(stat(output)))?.isDirectory() ?? false;
  const name = `${basename(source, extname(source))}.${formatRow(format).extension}`;
  return resolve(isDirectory ? join(output, name) : output);
}

/** @throws CommandError */
function refuseConversion(
  source: Pick<ImageFile, 'path' | 'format'>,
  format: ImageFormat,
  target: string,
): void {
  const { path } = source;
  if (source.format === format) {
    throw new CommandError(`${path} is ${format} already; choose another --format`);
  }
  if (!isConvertible(source.format)) {
    throw new CommandError(
      `${path} is ${source.format}, which qemu-img cannot convert; build the image in another format`,
    );
  }
  if (target === path) throw new CommandError(`${path} is the image itself; choose another --output`);
}

/** A name must not point to a file that a loss of power would empty. */
async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
