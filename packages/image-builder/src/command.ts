import { basename } from 'node:path';
import { BaseImageBuilder } from './base.ts';
import { commandEnvironment } from './build/command-environment.ts';
import type { BuildContext } from './context.ts';
import type { DiskImage } from './disk-image.ts';
import { ImageError } from './errors.ts';
import { FORMAT_NAMES, type ImageFormat, isImageFormat } from './formats.ts';
import type { BuilderModule, Diagnostic } from './modules.ts';
import type { ObjectSchema, SettingsOf } from './settings-schema.ts';

const SETTINGS = {
  type: 'object',
  required: ['command'],
  properties: {
    command: {
      type: 'array',
      format: 'program',
      items: { type: 'string' },
      description:
        'The program and its arguments. No shell reads them. Placeholders in arguments: `{output.raw}`, the path to ' +
        'write that format to, likewise `{output.qcow2}` and so on; `{image-id}`; `{image-name}`; `{directory}`, the ' +
        'working directory, which goes away when the build ends. A relative path of the program counts from the ' +
        'directory of this file.',
    },
    formats: {
      type: ['array', 'null'],
      items: { enum: FORMAT_NAMES },
      description:
        'Formats to build, besides those that providers need. Required if no argument has a placeholder `{output.…}`: ' +
        'the command then writes `{directory}/{image-id}.FORMAT` for each of them.',
    },
  },
} as const satisfies ObjectSchema;

/** Settings of a disk image of builder `command`. */
export type CommandSettings = SettingsOf<typeof SETTINGS>;

/** Builder `command`: any program makes the image. */
export const COMMAND: BuilderModule<typeof SETTINGS, CommandSettings> = {
  type: 'command',
  description: 'with any program',
  settings: SETTINGS,
  check: commandDiagnostics,
  programs: ({ command: [program = ''] }) => [{ pointer: '/command', program }],
  create: (diskimage, settings) => new CommandBuilder(diskimage, settings),
};

/** Builds with a program of the configuration. */
export class CommandBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[];
  readonly #settings: CommandSettings;

  /** @throws ImageError `invalid-configuration` */
  constructor(diskimage: DiskImage, settings: CommandSettings) {
    super(diskimage);
    const [wrong] = commandDiagnostics(settings);
    if (wrong !== undefined) {
      const { pointer, reason, remedy } = wrong;
      const place = `disk image "${diskimage.name}": ${pointer.slice(1)}`;
      throw new ImageError('invalid-configuration', `${place} ${reason}; ${remedy}`);
    }
    this.#settings = settings;
    this.nativeFormats = writtenFormats(settings);
  }

  protected override async createImage(context: BuildContext): Promise<void> {
    const { diskimage, directory, imageId, imageName, output } = context;
    const [program = '', ...args] = this.#settings.command;
    const values = new Map([
      ['image-id', imageId],
      ['image-name', imageName],
      ['directory', directory],
      ...FORMAT_NAMES.map((format) => [`output.${format}`, output(format)] as const),
    ]);
    const { release = '', scriptDir } = diskimage;
    const variables = {
      DIB_IMAGE_NAME: imageName,
      ...(release !== '' && { DIB_RELEASE: `${release}` }),
      ...(scriptDir !== undefined && { NODEPOOL_SCRIPTDIR: scriptDir }),
    };
    await context.run(
      program,
      args.map((arg) => arg.replace(PLACEHOLDER, (_, name: string) => values.get(name) ?? '')),
      { env: await commandEnvironment(context, variables, 'TMPDIR') },
    );
  }
}

/** Not `${name}`, a variable of a shell, nor `{{name}}`, as templates have it. */
const PLACEHOLDER = /(?<![${]){([a-z][a-z0-9.-]*)}(?!})/g;

const OUTPUT = 'output.';

/** Shells whose argument behind `-c` is a script. */
const SHELL = /^(?:ba|da|k|z)?sh$/;

function placeholdersOf(arg: string): string[] {
  return Array.from(arg.matchAll(PLACEHOLDER), ([, name = '']) => name);
}

/** Formats that the command writes. */
function writtenFormats({ command, formats }: CommandSettings): readonly ImageFormat[] {
  const named = command
    .slice(1)
    .flatMap(placeholdersOf)
    .flatMap((name) => (name.startsWith(OUTPUT) ? [name.slice(OUTPUT.length)] : []))
    .filter(isImageFormat);
  return named.length === 0 ? (formats ?? []) : [...new Set(named)];
}

/** Problems of settings that the schema accepts. */
function* commandDiagnostics(settings: CommandSettings): Generator<Diagnostic> {
  const { command, formats } = settings;
  if (!command[0]) {
    yield {
      pointer: '/command',
      reason: 'names no program',
      remedy: 'write a list: the program, its arguments',
    };
    return;
  }
  const shell = SHELL.test(basename(command[0]));
  const script = shell ? command.findIndex((arg, index) => index > 0 && /^-[a-z]*c$/.test(arg)) + 1 : 0;
  for (const [index, arg] of command.entries()) {
    for (const name of index === 0 ? [] : placeholdersOf(arg)) {
      const found = placeholderDiagnostic(name, formats ?? undefined);
      if (found !== undefined) yield { pointer: `/command/${index}`, ...found };
      if (script > 0 && index === script) {
        const reason = `has {${name}} in a shell script: the shell would run code that an image-id contains`;
        const remedy = 'write "$1" there, and pass the placeholder as an argument behind "sh" or another $0';
        yield { pointer: `/command/${index}`, reason, remedy };
      }
    }
  }
  if (writtenFormats(settings).length === 0) {
    const reason = 'does not tell the formats that it writes';
    const remedy = 'pass {output.raw} or {output.qcow2} as an argument, or add "formats"';
    yield { pointer: '/command', reason, remedy };
  }
}

function placeholderDiagnostic(
  name: string,
  formats: readonly ImageFormat[] | undefined,
): Pick<Diagnostic, 'reason' | 'remedy'> | undefined {
  if (name === 'image-id' || name === 'image-name' || name === 'directory') return undefined;
  const format = name.startsWith(OUTPUT) ? name.slice(OUTPUT.length) : undefined;
  if (format === undefined) {
    const known = '{output.FORMAT}, {image-id}, {image-name} or {directory}';
    return { reason: `has the unknown placeholder {${name}}`, remedy: `use ${known}` };
  }
  if (!isImageFormat(format)) {
    return {
      reason: `has {${name}}, which is not an image format`,
      remedy: `use one of ${FORMAT_NAMES.join(', ')}`,
    };
  }
  if (formats === undefined || formats.includes(format)) return undefined;
  return {
    reason: `has {${name}}, but "formats" lacks ${format}: that file would be lost`,
    remedy: `add ${format} to "formats", or remove "formats"`,
  };
}
