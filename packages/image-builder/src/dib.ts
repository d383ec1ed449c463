import { join } from 'node:path';
import { BaseImageBuilder } from './base.ts';
import { commandVariables } from './build/command-environment.ts';
import type { BuildContext, FullBuildContext } from './context.ts';
import { diagnoseDib } from './dib-diagnosis.ts';
import { elementDiagnostics } from './dib-element-diagnostics.ts';
import {
  ELEMENTS_PATH,
  elementNames,
  elementsPathOf,
  PACKAGE_LIST,
  withOwnElements,
} from './dib-elements.ts';
import { dibMaterials } from './dib-materials.ts';
import type { DiskImage } from './disk-image.ts';
import { FORMAT_NAMES, formatRow, type ImageFormat } from './formats.ts';
import type { BuilderModule } from './modules.ts';
import type { ObjectSchema, SettingsOf } from './settings-schema.ts';

const DEFAULT_COMMAND = 'disk-image-create';

const SETTINGS = {
  type: 'object',
  description: 'with diskimage-builder',
  properties: {
    elements: {
      type: ['array', 'string', 'null'],
      format: 'words',
      items: { type: 'string' },
      description: 'Elements for disk-image-create. A string is split like in a shell.',
    },
    'qemu-img-options': {
      type: 'string',
      description:
        "Value of disk-image-create's `--qemu-img-options`; an empty text omits the option. Default: `compat=0.10` if " +
        'qcow2 is the only format that qemu-img makes.',
    },
    'dib-cmd': {
      type: 'string',
      format: 'program',
      minLength: 1,
      default: DEFAULT_COMMAND,
      description: 'Program that gets the arguments of disk-image-create.',
    },
  },
} as const satisfies ObjectSchema;

/** Keys of a disk image of builder `dib`. */
export type DibSettings = Partial<SettingsOf<typeof SETTINGS>>;

/** Builder `dib`: diskimage-builder. */
export const DIB_MODULE: BuilderModule<typeof SETTINGS, DibSettings> = {
  type: 'dib',
  settings: SETTINGS,
  checkHost: (settings, diskimage) =>
    elementDiagnostics(settings.elements ?? [], diskimage, commandOf(settings)),
  create: (diskimage, settings) => new DibBuilder(diskimage, settings),
  diagnose: (settings, diskimage, options) =>
    diagnoseDib(settings.elements ?? [], diskimage, commandOf(settings), options),
};

const IMAGE_CACHE = 'DIB_IMAGE_CACHE';

/** Builds with diskimage-builder's `disk-image-create`, or with a command that accepts the same arguments. */
export class DibBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[] = FORMAT_NAMES.filter(
    (format) => formatRow(format).dibType !== undefined,
  );
  readonly #settings: DibSettings;

  constructor(diskimage: DiskImage, settings: DibSettings = {}) {
    super(diskimage);
    this.#settings = settings;
  }

  protected override async createImage(build: BuildContext): Promise<void> {
    const context = build as FullBuildContext; // a subclass outside this repository knows only the public members
    const { diskimage, directory, formats, imageId, packageList } = context;
    const elements = [
      ...elementNames(this.#settings.elements),
      ...(packageList === undefined ? [] : [PACKAGE_LIST]),
    ];
    const output = join(directory, imageId);
    const variables = { ...(await cacheVariables(context)), ...dibVariables(diskimage, output) };
    const args = dibArguments({ ...this.#settings, elements }, formats, output);
    const command = commandOf(this.#settings);
    const env = commandVariables(context, variables);
    const ownPath = elementsPathOf(diskimage, context.environment);
    const elementsPath = await withOwnElements(ownPath, elements);
    if (elementsPath !== '') env[ELEMENTS_PATH] = elementsPath;
    const materials = context.wantsMaterials
      ? dibMaterials(context, command, { ...context.environment, ...env })
      : undefined;
    const progressOf = dibProgress();
    await context.run(command, args, {
      env,
      onLine: (line) => {
        materials?.onLine(line);
        const progress = progressOf(line);
        if (progress !== undefined) context.progress(progress.done, 100, progress.phase);
      },
    });
    await materials?.report(output);
  }
}

/**
 * Returns variables that make elements keep downloads below this directory: packages of apt, dnf, zypper and pip, git
 * repositories, base images. By default, disk-image-create uses one directory for all images, so that concurrent builds
 * would fail at apt's lock.
 */
async function cacheVariables({
  diskimage,
  environment,
  cacheDirectory,
}: FullBuildContext): Promise<Record<string, string>> {
  const isSet = diskimage.envVars?.[IMAGE_CACHE] ?? environment[IMAGE_CACHE];
  const directory = isSet ? undefined : await cacheDirectory();
  return directory === undefined ? {} : { [IMAGE_CACHE]: directory };
}

function commandOf(settings: DibSettings): string {
  return settings['dib-cmd'] ?? DEFAULT_COMMAND;
}

/** nodepool's value, for qemu before 1.1. */
const QCOW2_OPTIONS = 'compat=0.10';

/** Types for which disk-image-create also passes the options of qcow2 to qemu-img. */
const OTHER_QEMU_TYPES: readonly ImageFormat[] = ['vmdk', 'vdi', 'vhdx', 'vpc'];

/**
 * Returns nodepool's arguments of disk-image-create.
 *
 * @param output path of the image without its extension
 * @throws ImageError `invalid-configuration` for elements with a quote that is not closed
 */
export function dibArguments(
  settings: DibSettings,
  formats: readonly ImageFormat[],
  output: string,
): string[] {
  const qcow2Only = formats.includes('qcow2') && !formats.some((format) => OTHER_QEMU_TYPES.includes(format));
  const { elements, 'qemu-img-options': options = qcow2Only ? QCOW2_OPTIONS : '' } = settings;
  // disk-image-create makes a squashfs only if it is the first of the types.
  const types = formats
    .toSorted((one, other) => Number(other === 'squashfs') - Number(one === 'squashfs'))
    .map((format) => formatRow(format).dibType ?? format);
  return [
    '-x',
    '-t',
    types.join(','),
    '--no-tmpfs',
    ...(options === '' ? [] : ['--qemu-img-options', options]),
    '-o',
    output,
    ...elementNames(elements),
  ];
}

/** Returns nodepool's variables of disk-image-create. */
export function dibVariables(diskimage: DiskImage, output: string): Record<string, string> {
  const { name, release = '', elementsDir, scriptDir } = diskimage;
  return {
    DIB_RELEASE: `${release}`,
    DIB_IMAGE_NAME: name,
    DIB_IMAGE_FILENAME: output,
    ...(elementsDir !== undefined && { ELEMENTS_PATH: elementsDir }),
    ...(scriptDir !== undefined && { NODEPOOL_SCRIPTDIR: scriptDir }),
  };
}

/**
 * Stages of disk-image-create, each with the percentage that is done at its start in an average Debian image. A build
 * may lack some hooks.
 */
const STAGES: readonly { readonly phase: string; readonly start: RegExp; readonly done: number }[] = [
  hook('extra-data.d', 30),
  hook('root.d', 2),
  hook('pre-install.d', 32),
  hook('install.d', 35),
  hook('post-install.d', 55),
  hook('post-root.d', 65),
  hook('block-device.d', 67),
  hook('pre-finalise.d', 72),
  hook('finalise.d', 74),
  hook('cleanup.d', 80),
  { phase: 'conversion', start: /(?:^|\| )Converting image using qemu-img/, done: 82 },
  { phase: 'conversion', start: /(?:^|\| )Image file \S+ created/, done: 95 },
  { phase: 'cleanup', start: /(?:^|\| )Build completed successfully/, done: 100 },
];

function hook(phase: string, done: number) {
  return { phase, start: new RegExp(`dib-run-parts Running \\S*/${phase}/`), done };
}

/** Number of output lines after which half of a stage counts as done. debootstrap prints about 600. */
const HALF_OF_STAGE = 300;

/** Returns a function that derives the progress of a build from its output lines; undefined before the first stage. */
export function dibProgress(): (
  line: string,
) => { readonly done: number; readonly phase: string } | undefined {
  let stage: (typeof STAGES)[number] | undefined;
  let lines = 0;
  return (line) => {
    const started = STAGES.find(({ start }) => start.test(line));
    if (started !== undefined && started !== stage) [stage, lines] = [started, 0];
    if (stage === undefined) return undefined;
    const { phase, done } = stage;
    const next = Math.min(...STAGES.map((other) => other.done).filter((other) => other > done), 100);
    const part = lines / (lines + HALF_OF_STAGE);
    lines += 1;
    return { phase, done: done + (next - done) * part };
  };
}
