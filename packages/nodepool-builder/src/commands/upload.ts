import { createHash } from 'node:crypto';
import { basename, dirname, extname } from 'node:path';
import {
  FORMAT_NAMES,
  type ImageFile,
  type ImageFormat,
  type ImageProvider,
  type ProviderImage,
  type RequiredAttestation,
  type SettingsOf,
} from '@nodepool-builder/image-builder';
import { checksumsOf, imageIdError, isConvertible } from '@nodepool-builder/image-builder/internal';
import { readAttestations } from '@nodepool-builder/provenance';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { SiteAttestation } from '../attestation/site-attestation.ts';
import type { Modules } from '../configuration/modules.ts';
import { CommandError, type JsonOptions, printResult, usageError } from '../terms/command-error.ts';
import { recordSchema, TEXT, TEXT_OR_NULL } from '../terms/record-schema.ts';
import {
  type ConversionSettings,
  FILE_PROPERTIES,
  FORMAT,
  inspectFile,
  type SourceFile,
  sourceFile,
  withConvertedFile,
} from './image-file.ts';
import { optionalConfigOption, type ProviderOptions, providerOption, withProvider } from './job-provider.ts';
import { exampleOf, jsonFileOption } from './options.ts';
import { withoutProgress, withProgress } from './progress.ts';

type Metadata = Readonly<Record<string, string>>;

interface UploadOptions extends ProviderOptions, JsonOptions {
  readonly name: string;
  readonly format?: ImageFormat;
  readonly meta?: Metadata;
  readonly temporaryDirectory?: string;
  readonly dryRun?: true;
}

/** `upload FILE --provider P --name N`: prints the provider's id of the image. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('upload')
    .description(
      'Uploads an image file, and prints its external-id in the provider. It needs no daemon; "image-upload" has a ' +
        'builder upload an image. Jobs that upload the same file, one after the other or at the same time, share one ' +
        'image: each prints the same external-id. (In a cloud that imports by tasks, with image_api_use_tasks, they ' +
        'must not run at the same time.) If the provider needs another format, the file is converted; its disk must ' +
        'not exceed virtual-size-limit of the configuration file, 256 GiB by default. Attestations that its require-attestation ' +
        'requires are read from ID.d next to ID.FORMAT, as the command build makes them. SIGTERM and SIGINT stop the ' +
        'upload and remove what it began.',
    )
    .argument('<file>', 'the image')
    .addOption(providerOption())
    .requiredOption('--name <name>', 'name of the image in the provider; several images may share it')
    .addOption(
      new Option('--format <format>', 'format of the file (default: by its extension)').choices(FORMAT_NAMES),
    )
    .option('--meta <key=value>', 'property to store with the image; repeat it for more', addMetadata)
    .option(
      '--temporary-directory <directory>',
      'directory for a converted file (default: the directory of the file)',
    )
    .option('--dry-run', 'only print what would be uploaded, or the external-id if the image exists')
    .addOption(optionalConfigOption())
    .option(
      '--json',
      'print JSON: external-id, size and digests of the image and of the file, and whether the image existed',
    )
    .addOption(jsonFileOption())
    .addHelpText(
      'after',
      exampleOf(
        'upload debian.qcow2 --provider ci --name debian --meta architecture=x86_64',
        'upload debian.raw --provider directory:/srv/images --name debian --json',
      ),
    )
    .action(async (file: string, options: UploadOptions) => runUpload(file, options, await modules()));
}

function addMetadata(text: string, metadata: Metadata = {}): Metadata {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must be KEY=VALUE.');
  return { ...metadata, [text.slice(0, at)]: text.slice(at + 1) };
}

async function runUpload(file: string, options: UploadOptions, modules: Modules): Promise<void> {
  const { name, meta: metadata = {}, dryRun = false, json, temporaryDirectory } = options;
  const source = await sourceFile(file, '--format', options.format);
  const error = imageIdError(name);
  if (error !== undefined) throw usageError(`--name ${JSON.stringify(name)} ${error}; choose another`);
  const uploaded = await withProvider(
    options,
    modules,
    async ({ configuration, provider, maxDiskSize, attestation, signal }) => {
      const required = attestation?.requiredBy(configuration.entry);
      if (attestation !== undefined && required !== undefined) {
        await checkFile(attestation, required, source.path, provider.name, signal);
      }
      const settings = {
        directory: temporaryDirectory ?? dirname(source.path),
        maxDiskSize,
        compress: configuration.entry['compress-qcow2'],
        withProgress: json || !process.stderr.isTTY ? withoutProgress : withProgress,
      };
      return await uploadFile(provider, { ...source, name, metadata, dryRun, ...settings }, signal);
    },
  );
  const { 'external-id': externalId, provider } = uploaded;
  if (externalId === null && !json) {
    console.error(`would upload ${file} to ${provider} as ${name}, in the format ${uploaded.format}`);
  }
  await printResult(uploaded, externalId === null ? [] : [externalId], options);
}

/** Refuses a file without the required attestations, which are in `ID.d/attestations` next to `ID.FORMAT`. */
async function checkFile(
  site: SiteAttestation,
  required: RequiredAttestation,
  path: string,
  provider: string,
  signal: AbortSignal,
): Promise<void> {
  const imageId = basename(path, extname(path));
  const attestations = await readAttestations(dirname(path), imageId);
  const { sha256 } = await checksumsOf(path, { signal });
  const name = `the upload of ${path} to ${provider}`;
  await site.checkFile(required, { name, fileName: basename(path), sha256, attestations }, { signal });
}

/** Schema of the JSON of `upload`: the image in the provider. */
export const UPLOADED_IMAGE = recordSchema({
  'external-id': {
    ...TEXT_OR_NULL,
    description: 'Id in the provider; null in a dry run, if the image does not exist.',
  },
  provider: { ...TEXT, description: 'Name of the provider.' },
  name: { ...TEXT, description: 'Name of the image in the provider.' },
  'image-id': { ...TEXT, description: 'Id of the image, derived from the digest of the file.' },
  'upload-id': { ...TEXT, description: 'Id of the upload, derived from the digest of the file.' },
  format: { ...FORMAT, description: 'Format in the provider.' },
  size: {
    type: ['integer', 'null'],
    description: 'Size in the provider in bytes; null if no file of that format exists yet.',
  },
  md5: { ...TEXT_OR_NULL, description: 'Digest of the image in the provider, if known.' },
  sha256: { ...TEXT_OR_NULL, description: 'Digest of the image in the provider, if known.' },
  source: {
    ...recordSchema(FILE_PROPERTIES),
    description: 'Path (`file`), `format`, `size`, `md5` and `sha256` of the file.',
  },
  existed: { type: 'boolean', description: 'The provider had the image before.' },
});

interface FileUpload extends SourceFile, ConversionSettings {
  /** The image's name in the provider. */
  readonly name: string;
  readonly metadata: Metadata;
  /** True to only report what would be done. */
  readonly dryRun: boolean;
}

/**
 * Uploads a file once: other uploads of the same file, before or at the same time, return the same image. The result
 * has the keys of the JSON.
 *
 * @throws CommandError if the provider accepts neither its format nor one that it can be converted to; ImageError if it
 * does not have its format; errors of the provider and of the conversion
 */
export async function uploadFile(
  provider: ImageProvider,
  request: FileUpload,
  signal: AbortSignal,
): Promise<SettingsOf<typeof UPLOADED_IMAGE>> {
  const { path, name, metadata, dryRun } = request;
  const format = formatFor(provider, request);
  const title = basename(path);
  const { size, mtime: builtAt } = await inspectFile(request);
  const checksums = await request.withProgress(`checksums of ${title}`, (onProgress) =>
    checksumsOf(path, { signal, onProgress: (progress) => onProgress({ ...progress, size }) }),
  );
  const uploadId = jobUploadId({ provider: provider.name, name, format, sha256: checksums.sha256 });
  const imageId = jobImageId(uploadId);
  const source = { path, format: request.format, size, checksums };
  const isConverted = source.format !== format;
  const find = async (): Promise<ProviderImage | undefined> =>
    (await provider.list({ signal })).find((image) => image.uploadId === uploadId);
  const existing = await find();
  const result = (externalId: string | null, image?: Pick<ProviderImage, 'size' | 'checksums'>) => {
    const { size: sizeThere = null, checksums: there } = (isConverted ? image : source) ?? {};
    return {
      'external-id': externalId, // null in a dry run, if the image does not exist
      provider: provider.name,
      name,
      'image-id': imageId,
      'upload-id': uploadId,
      format,
      size: sizeThere, // in the provider; null, like the digests, until a file of that format exists
      md5: there?.md5 ?? null,
      sha256: there?.sha256 ?? null,
      source: { file: path, format: source.format, size, ...checksums },
      existed: existing !== undefined,
    };
  };
  if (existing !== undefined || dryRun) return result(existing?.externalId ?? null, existing);
  const transfer = async (file: ImageFile) => {
    const upload = { uploadId, imageId, imageName: name, builtAt, file, metadata, shared: true };
    const { externalId } = await request.withProgress(
      `upload of ${title} to ${provider.name}`,
      (onProgress) =>
        provider.upload(upload, {
          signal,
          onProgress: (progress) => onProgress({ ...progress, size: file.size }),
        }),
    );
    // Another job may have finished first, with its own conversion.
    return result(externalId, (isConverted && (await find())) || file);
  };
  return isConverted
    ? await withConvertedFile(source, format, request, signal, transfer)
    : await transfer(source);
}

/**
 * Returns the format of the image in the provider: the file's if the provider accepts it, else the provider's first
 * choice.
 */
function formatFor({ name, formats }: ImageProvider, { path, format }: SourceFile): ImageFormat {
  const target = formats.find((taken) => taken === format) ?? formats.find(isConvertible);
  if (target === format || (target !== undefined && isConvertible(format))) return target;
  throw new CommandError(
    `provider "${name}" needs ${formats.join(' or ')}, and ${path} is ${format}, which cannot be converted; build the image in another format`,
  );
}

/** Identity of a CI job's upload: provider, name and format of the image, and digest of the source file. */
type JobUpload = Readonly<Record<'provider' | 'name' | 'format' | 'sha256', string>>;

/** Derives the id of an upload. All jobs that upload the same file get the same id. */
export function jobUploadId({ provider, name, format, sha256 }: JobUpload): string {
  const key = JSON.stringify([provider, name, format, sha256]);
  return `job-${createHash('sha256').update(key).digest('hex')}`;
}

/** Returns whether a CI job made the upload. The manager and Gearman jobs use other forms of ids. */
export function isJobUploadId(uploadId = ''): boolean {
  return /^job-[0-9a-f]{64}$/.test(uploadId);
}

/** Derives the image id of an upload. It is short, because it becomes part of the image's name in the provider. */
function jobImageId(uploadId: string): string {
  return uploadId.slice('job-'.length, 'job-'.length + 16);
}
