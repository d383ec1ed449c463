import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { FORMAT_NAMES, type ImageFormat } from '@nodepool-builder/image-builder';
import { imageIdFault } from '@nodepool-builder/image-builder/module-kit';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Modules } from '../modules.ts';
import { CommandError } from './command-error.ts';
import { formatOfFile } from './image-file.ts';
import { type JsonOptions, jsonFileOption, writeJson } from './json-output.ts';
import { withoutProgress, withProgressBar } from './progress-display.ts';
import {
  optionalConfigOption,
  type ProviderOptions,
  providerOption,
  withProvider,
} from './provider-option.ts';

interface UploadOptions extends ProviderOptions, JsonOptions {
  readonly name: string;
  readonly format?: ImageFormat;
  readonly meta?: Readonly<Record<string, string>>;
  readonly temporaryDirectory?: string;
  readonly dryRun?: true;
}

/** `upload FILE --provider P --name N`: prints the provider's id of the image. */
export function registerUpload(program: Command, modules: Modules): void {
  program
    .command('upload')
    .summary('upload an image file')
    .description(
      'Uploads an image file, and prints its external-id in the provider. It needs no daemon; "image-upload" has a ' +
        'builder upload an image. Jobs that upload the same file, one after the other or at the same time, share one ' +
        'image: each prints the same external-id. (In a cloud that imports by tasks, with image_api_use_tasks, they ' +
        'must not run at the same time.) If the provider takes another format, the file is converted; its disk must ' +
        'not exceed virtual-size-limit of the configuration file, 256 GiB by default. SIGTERM and SIGINT stop the ' +
        'upload and remove what it began.',
    )
    .argument('<file>', 'the image')
    .addOption(providerOption(modules))
    .requiredOption('--name <name>', 'name of the image in the provider; several images may share it')
    .addOption(
      new Option('--format <format>', 'format of the file (default: by its extension)').choices(FORMAT_NAMES),
    )
    .option('--meta <key=value>', 'property to store with the image; repeat it for more', addMetadata)
    .option('--temporary-directory <directory>', 'directory for a converted file (default: that of the file)')
    .option('--dry-run', 'only print what would be uploaded, or the external-id if the image exists')
    .addOption(optionalConfigOption())
    .option(
      '--json',
      'print JSON: external-id, size and digests of the image and of the file, and whether the image existed',
    )
    .addOption(jsonFileOption())
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, options: UploadOptions) => {
      const { name, meta: metadata = {}, dryRun = false, json = false, temporaryDirectory } = options;
      const format = options.format ?? formatOfFile(file, '--format');
      const fault = imageIdFault(name);
      if (fault !== undefined)
        throw new CommandError(`--name ${JSON.stringify(name)} ${fault}; choose another`);
      const upload = {
        // A builder refuses symbolic links. A missing file is reported later.
        path: await realpath(file).catch(() => resolve(file)),
        format,
        name,
        metadata,
        temporaryDirectory,
        dryRun,
        withProgress: json ? withoutProgress : withProgressBar,
      };
      // Imported on demand: the daemon starts faster without it.
      const { uploadFile } = await import('./upload-file.ts');
      const uploaded = await withProvider(options, modules, ({ provider }, signal, largestDisk) =>
        uploadFile(provider, { ...upload, largestDisk }, signal),
      );
      const { 'external-id': externalId, provider } = uploaded;
      await writeJson(uploaded, options);
      if (json) return;
      if (externalId !== null) console.log(externalId);
      else console.error(`would upload ${file} to ${provider} as ${name}, in the format ${uploaded.format}`);
    });
}

const EXAMPLES = `
Examples:
  $ nodepool-builder upload debian.qcow2 --provider ci --name debian --meta architecture=x86_64
  $ nodepool-builder upload debian.raw --provider directory:/srv/images --name debian --json`;

function addMetadata(
  text: string,
  metadata: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must be KEY=VALUE.');
  return { ...metadata, [text.slice(0, at)]: text.slice(at + 1) };
}
