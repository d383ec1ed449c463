import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Image } from '@nodepool-builder/image-builder';
import { checksumsOf, isImageFormat, makeDirectory } from '@nodepool-builder/image-builder/module-kit';
import type { BuildFacts, FoundPackages, Package, PackageChanges } from '@nodepool-builder/provenance';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import {
  CommandError,
  failing,
  type JsonOptions,
  messageOf,
  printResult,
  usageError,
} from '../terms/command-error.ts';
import { buildAsRecorded } from './build-as-recorded.ts';
import { changedInputs } from './changed-inputs.ts';
import { type ContentChanges, compareContents, type DiskFile } from './disk-contents.ts';
import { collectEvidence, type Evidence, type HashedFile } from './evidence.ts';
import { type JobWorkspace, withWorkspace } from './job-workspace.ts';
import { sendRequest } from './manager-requests.ts';
import { append, configOption, exampleOf, jsonFileOption, secureOption } from './options.ts';
import { withoutProgress, withProgress } from './progress.ts';
import { type Changes, isUnchanged, linesOf, NO_CHANGES, type RebuiltImage } from './rebuild-report.ts';
import { recordedDiskImage } from './recorded-inputs.ts';
import { untilStopSignal } from './stop-signal.ts';
import { trustedKeys } from './verify.ts';

interface RebuildOptions extends JsonOptions {
  readonly config: string;
  readonly compare?: true;
  readonly secure?: string;
  readonly output: string;
  readonly key?: readonly string[];
  readonly attestations?: readonly string[];
}

/** `rebuild NAME`: asks the manager for a build. `rebuild IMAGE-ID --compare`: builds here, and compares. */
export function registerRebuild(program: Command, modules: Modules): void {
  program
    .command('rebuild')
    .description(
      'Asks the manager to build a disk image now, and to upload it wherever it is used, however old the newest image ' +
        'is. "image-build" only has it built; "build" builds here, without manager and builder. With --compare, it ' +
        'needs no manager: it builds an image of images-dir a second time in a private directory, from the settings, ' +
        'variables and commits that its attestation records, and prints what differs: inputs, files, packages, and ' +
        'files inside the disk. Exit code 9 says that the new image differs in packages or in files inside the disk.',
    )
    .argument('<diskimage>', 'name of the disk image; with --compare, the id of an image in images-dir')
    .addOption(configOption())
    .option('--compare', 'build the image of this image-id a second time here, and compare')
    .addOption(secureOption())
    .option('--output <directory>', 'directory for the build log and, meanwhile, the new image', '.')
    .option(
      '--key <file>',
      'public key to trust; repeat it for more (default: attestation.trusted-keys)',
      append,
    )
    .option('--attestations <path>', 'attestation, or directory of attestations, to use in addition', append)
    .option('--json', 'with --compare: print JSON: what differs')
    .addOption(jsonFileOption())
    .addHelpText(
      'after',
      exampleOf(
        'rebuild debian -c nodepool.yaml',
        'rebuild debian-0000000042-k7f3q2xa --compare -c nodepool.yaml',
      ),
    )
    .action((name: string, options: RebuildOptions) => rebuild(name, options, modules));
}

async function rebuild(name: string, options: RebuildOptions, modules: Modules): Promise<void> {
  if (!options.compare) {
    const unused = (['secure', 'key', 'attestations', 'json', 'jsonFile'] as const).find(
      (option) => options[option] !== undefined,
    );
    if (unused !== undefined) {
      const option = unused === 'jsonFile' ? 'json-file' : unused;
      throw usageError(`--${option} needs --compare; without it, the manager builds`);
    }
    const { configuration } = await loadConfiguration(options.config, { modules });
    await sendRequest('rebuild', name, configuration);
    return;
  }
  const result = await untilStopSignal((signal) => compareRebuild(name, options, modules, signal));
  await printResult(result, linesOf(result), options);
  if (result.state === 'different') throw new CommandError('', { exitReason: 'different' });
}

/** @throws CommandError, ImageError, ProvenanceError */
async function compareRebuild(
  imageId: string,
  { config, secure, key = [], attestations = [], json, ...options }: RebuildOptions,
  modules: Modules,
  signal: AbortSignal,
): Promise<RebuiltImage> {
  const { configuration, plugins } = await loadConfiguration(config, { modules, secure });
  const keys = await trustedKeys(key, configuration);
  const show = json ? withoutProgress : withProgress;
  const evidence = await collectEvidence(imageId, {
    attestations,
    configuration,
    modules,
    signal,
    withProgress: show,
  });
  const recorded = await recordedBuild(evidence, keys);
  const diskimage = recordedDiskImage(recorded, { configuration, modules: plugins.modules });
  const { largestDisk } = configuration;
  const output = resolve(options.output);
  const unwritable = failing(`cannot make the directory ${output}`, 'choose another --output');
  await makeDirectory(output, 0o777).catch(unwritable);
  return await withWorkspace(output, configuration, async (workspace) => {
    const site = { configuration, modules: plugins.modules, output, show, signal };
    const {
      image,
      packages: rebuilt,
      ...used
    } = await buildAsRecorded(imageId, recorded, diskimage, workspace, site);
    const files = await compareFiles(image, recorded, signal);
    const isIdentical = files.every((one) => one.recorded === one.now);
    const packages = await comparePackagesOf(evidence, imageId, recorded, rebuilt);
    const contents = isIdentical
      ? NO_CHANGES
      : withReason(await compareDisks(evidence, image, workspace, { largestDisk, signal }));
    const hasSameContents = [packages, contents].every(isUnchanged) && contents.reason === null;
    return {
      'image-id': imageId,
      'image-name': diskimage.name,
      state: isIdentical ? 'identical' : hasSameContents ? 'same-contents' : 'different',
      inputs: changedInputs(recorded, { diskimage, ...used }),
      files,
      packages,
      contents,
      log: join(output, `${imageId}.log`),
    };
  });
}

/** @throws CommandError if nothing proves how the image was built */
async function recordedBuild(
  { title, subject, attestations }: Evidence,
  keys: Parameters<typeof import('@nodepool-builder/provenance').verifyChain>[2],
): Promise<BuildFacts> {
  const { buildFactsOf, verifyChain } = await import('@nodepool-builder/provenance');
  const chain = verifyChain(subject, attestations, keys);
  const facts = chain.build && buildFactsOf(chain.build);
  if (facts !== undefined) return facts;
  const why = chain.links.findLast(({ state }) => state !== 'proven')?.reason ?? 'it has no attestation';
  const exitReason = chain.state === 'refuted' ? 'refuted' : 'unproven';
  throw new CommandError(
    `nothing proves how ${title} was built: ${why}; build it with "attestation" in nodepool.yaml, then compare`,
    { exitReason },
  );
}

async function compareFiles(
  image: Image,
  recorded: BuildFacts,
  signal: AbortSignal,
): Promise<RebuiltImage['files']> {
  const compared: RebuiltImage['files'][number][] = [];
  for (const { name, sha256 } of recorded.subjects) {
    const format = name.slice(image.id.length + 1);
    if (!name.startsWith(`${image.id}.`) || !isImageFormat(format)) continue;
    const file = image.files.find((one) => one.format === format);
    const now = file && (file.checksums ?? (await checksumsOf(file.path, { signal }))).sha256;
    compared.push({ format, recorded: sha256, now: now ?? null });
  }
  return compared;
}

function withReason(changes: ContentChanges | { readonly reason: string }): Changes {
  return 'reason' in changes ? { ...NO_CHANGES, ...changes } : { ...changes, reason: null };
}

async function comparePackagesOf(
  { files: [file] }: Evidence,
  imageId: string,
  recorded: BuildFacts,
  after: FoundPackages,
): Promise<Changes> {
  const { comparePackages, readAttestedPackages } = await import('@nodepool-builder/provenance');
  if (file === undefined) return { ...NO_CHANGES, reason: 'its files are not on this host' };
  let before: readonly Package[];
  try {
    before = await readAttestedPackages(dirname(file.path), imageId, recorded);
  } catch (error) {
    return { ...NO_CHANGES, reason: messageOf(error) };
  }
  if ('reason' in after) return { ...NO_CHANGES, reason: after.reason };
  const { added, removed, changed }: PackageChanges = comparePackages(before, after.packages);
  return {
    added: added.map(nameOf),
    removed: removed.map(nameOf),
    changed: changed.map((change) => `${nameOf(change.before)} → ${change.after.version}`),
    reason: null,
  };
}

function nameOf({ name, version }: Package): string {
  return `${name} ${version}`;
}

async function compareDisks(
  { files }: Evidence,
  image: Image,
  { repository }: JobWorkspace,
  options: { readonly largestDisk: number; readonly signal: AbortSignal },
): Promise<ContentChanges | { readonly reason: string }> {
  const before = diskOf(files);
  const after = diskOf(image.files);
  if (before === undefined || after === undefined) {
    return { reason: 'no file of the image is a disk on this host' };
  }
  const directory = join(repository.directory, '.nodepool-builder', 'comparison');
  await mkdir(directory, { mode: 0o700 });
  return await compareContents(before, after, { ...options, directory });
}

/** Formats of disks, the one that needs no conversion first. */
const DISKS = ['raw', 'qcow2', 'vhd', 'vhdx', 'vmdk', 'vdi', 'vpc', 'vhd-fixed'] as const;

function diskOf(files: readonly (Pick<HashedFile, 'path' | 'format'> | DiskFile)[]): DiskFile | undefined {
  for (const format of DISKS) {
    const file = files.find((one) => one.format === format);
    if (file !== undefined) return { path: file.path, format };
  }
  return undefined;
}
