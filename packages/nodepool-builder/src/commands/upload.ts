import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { FORMAT_NAMES, type ImageFormat, imageIdFault } from '@nodepool-builder/image-builder';
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
      'Uploads an image file, and prints the external-id that it has in the provider. It needs no daemon. To upload ' +
        'the same file again, or in several jobs at the same time, leaves one image, and prints the same external-id ' +
        'each time; an image that is there stays as it is. Only a cloud that imports by tasks (image_api_use_tasks) ' +
        'cannot take the same file from several jobs at the same time. A disk above virtual-size-limit of the ' +
        'configuration file, 256 GiB by default, is not converted. SIGTERM and SIGINT stop it, and it removes what ' +
        'it began.',
    )
    .argument('<file>', 'the image')
    .addOption(providerOption())
    .requiredOption(
      '--name <name>',
      'what the image is called in the provider; several may be called the same',
    )
    .addOption(
      new Option('--format <format>', 'format of the file (default: by its extension)').choices(FORMAT_NAMES),
    )
    .option('--meta <key=value>', 'a property to store with the image; again for more', addMetadata)
    .option(
      '--temporary-directory <directory>',
      'where it is converted, if the provider takes another format (default: beside the file)',
    )
    .option('--dry-run', 'say what would be uploaded; prints the external-id only if the image is there')
    .addOption(optionalConfigOption())
    .option(
      '--json',
      'print JSON: the external-id, size and digests of the image in the provider and of the file, and whether it was there',
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
        // Images must not be symbolic links. A missing file is reported later.
        path: await realpath(file).catch(() => resolve(file)),
        format,
        name,
        metadata,
        temporaryDirectory,
        dryRun,
        withProgress: json ? withoutProgress : withProgressBar,
      };
      // Not at the top: the daemon does without, and starts the sooner.
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
  if (at < 1) throw new InvalidArgumentError('It has to be KEY=VALUE.');
  return { ...metadata, [text.slice(0, at)]: text.slice(at + 1) };
}
