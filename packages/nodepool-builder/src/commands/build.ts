import { resolve } from 'node:path';
import { FORMAT_NAMES, type ImageFormat } from '@nodepool-builder/image-builder';
import { checkImageId } from '@nodepool-builder/image-builder/module-kit';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Configuration, DiskImageConfiguration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { CommandError, choiceOf } from './command-error.ts';
import { newImageId } from './job-commands.ts';
import { type JsonOptions, jsonFileOption, writeJson } from './json-output.ts';
import { configOption, secureOption } from './options.ts';
import { withoutProgress, withProgress } from './progress-display.ts';
import { untilStopSignal } from './stop-signal.ts';

interface BuildOptions extends JsonOptions {
  readonly config: string;
  readonly secure?: string;
  readonly output: string;
  readonly imageId?: string;
  readonly format?: readonly ImageFormat[];
  readonly verbose?: true;
}

/** `build NAME`: prints the paths of the new image's files. */
export function registerBuild(program: Command, modules: Modules): void {
  program
    .command('build')
    .summary('build an image')
    .description(
      'Builds an image of the configuration file in this process, with whichever builder it has, and prints the path ' +
        'of each of its files. Each file has its digests beside it, in FILE.md5 and FILE.sha256; the build log is ' +
        'IMAGE-ID.log. It needs no daemon and no Gearman, and does not use images-dir. SIGTERM and SIGINT stop it. ' +
        'Whether it succeeds or fails, nothing else is left: no process, mount, instance or snapshot. If it is ' +
        'killed, the next build with the same --output cleans up, and "reap" removes what is left in a cloud.',
    )
    .argument('<name>', 'name of the disk image, as in diskimages or zuul-images')
    .addOption(configOption())
    .addOption(secureOption())
    .addOption(
      new Option('--output <directory>', 'directory for the files').default('.', 'the current directory'),
    )
    .option(
      '--image-id <id>',
      'id of the image: the files are ID.FORMAT (default: the name, the time, random)',
    )
    .addOption(
      new Option(
        '--format <format>',
        'a format to make; again for more (default: as the configuration says)',
      ).argParser(addFormat),
    )
    .option('--verbose', 'print the build log on standard error, in place of the progress')
    .option(
      '--json',
      'print JSON: image-id, build time, log, and path, format, size and digests of each file',
    )
    .addOption(jsonFileOption())
    .addHelpText('after', EXAMPLES)
    .action(async (name: string, options: BuildOptions) => {
      const { config, secure, output, format = [], json = false, verbose = false } = options;
      const imageId = options.imageId ?? newImageId(name, new Date());
      checkImageId(imageId);
      const { configuration, plugins } = await loadConfiguration(config, { modules, secure });
      const diskimage = findDiskImage(configuration, name);
      // Imported on demand: the daemon starts faster without it.
      const { buildImage } = await import('./build-image.ts');
      const built = await untilStopSignal((signal) =>
        buildImage(
          {
            configuration,
            diskimage,
            modules: plugins.modules,
            imageId,
            formats: format,
            output: resolve(output),
            withProgress: json || verbose ? withoutProgress : withProgress,
            ...(verbose && { onLine: (line: string) => console.error(line) }),
          },
          signal,
        ),
      );
      await writeJson(built, options);
      if (!json) for (const { file } of built.files) console.log(file);
    });
}

const EXAMPLES = `
Examples:
  $ nodepool-builder build debian -c nodepool.yaml --output images --format qcow2
  $ nodepool-builder upload "$(nodepool-builder build debian --format qcow2)" --provider ci --name debian`;

function addFormat(format: string, formats: readonly ImageFormat[] = []): readonly ImageFormat[] {
  const known = FORMAT_NAMES.find((name) => name === format);
  if (known === undefined) {
    throw new InvalidArgumentError(`Allowed choices are ${FORMAT_NAMES.join(', ')}.`);
  }
  return formats.includes(known) ? formats : [...formats, known];
}

function findDiskImage({ file, diskimages }: Configuration, name: string): DiskImageConfiguration {
  const found = diskimages.find((diskimage) => diskimage.name === name);
  if (found !== undefined) return found;
  const names = diskimages.map((diskimage) => diskimage.name);
  throw new CommandError(`disk image "${name}" is not in ${file}; ${choiceOf(names)}`);
}
