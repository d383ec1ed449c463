import { stat } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { BaseImageBuilder } from './base.ts';
import { commandVariables } from './build/command-environment.ts';
import { fileMaterial } from './build/file-material.ts';
import type { FullBuildContext } from './context.ts';
import type { DiskImage } from './disk-image.ts';
import { ImageError } from './errors.ts';
import { FORMAT_NAMES, type ImageFormat, isImageFormat } from './formats.ts';
import type { BuilderModule, Diagnostic } from './modules.ts';
import { findProgram } from './process/find-program.ts';
import type { ObjectSchema, SettingsOf } from './settings-schema.ts';

const SETTINGS = {
  type: 'object',
  description: 'with any program',
  required: ['command'],
  properties: {
    command: {
      type: 'array',
      format: 'program',
      items: { type: 'string' },
      description:
        'Program and its arguments, run without a shell. Placeholders in arguments are `{output.raw}`, ' +
        '`{output.qcow2}` and so on for the path to write each format to, `{image-id}`, `{image-name}`, and ' +
        '`{directory}` for the working directory, which is removed when the build ends. A relative program path is ' +
        'resolved against the directory of this file.',
    },
    formats: {
      type: ['array', 'null'],
      items: { enum: FORMAT_NAMES },
      description:
        'Formats to build, in addition to those that providers need. Required if no argument contains a placeholder ' +
        '`{output.…}`. The command then writes `{directory}/{image-id}.FORMAT` for each format.',
    },
  },
} as const satisfies ObjectSchema;

/** Settings of a disk image of builder `command`. */
export type CommandSettings = SettingsOf<typeof SETTINGS>;

/** Builder `command`: any program makes the image. */
export const COMMAND_MODULE: BuilderModule<typeof SETTINGS, CommandSettings> = {
  type: 'command',
  settings: SETTINGS,
  check: commandDiagnostics,
  create: (diskimage, settings) => new CommandBuilder(diskimage, settings),
};

/** Builds with any program in the configuration. */
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

  protected override async createImage(context: FullBuildContext): Promise<void> {
    const { diskimage, directory, imageId, outputPath } = context;
    const [program = '', ...args] = this.#settings.command;
    const values = new Map([
      ['image-id', imageId],
      ['image-name', diskimage.name],
      ['directory', directory],
      ...FORMAT_NAMES.map((format) => [`output.${format}`, outputPath(format)] as const),
    ]);
    const { release = '', scriptDir } = diskimage;
    const variables = {
      DIB_IMAGE_NAME: diskimage.name,
      ...(release !== '' && { DIB_RELEASE: `${release}` }),
      ...(scriptDir !== undefined && { NODEPOOL_SCRIPTDIR: scriptDir }),
    };
    const env = commandVariables(context, variables);
    if (context.wantsMaterials) await this.#addMaterials(context, env.PATH);
    await context.run(
      program,
      args.map((arg) => arg.replace(PLACEHOLDER, (_, name: string) => values.get(name) ?? '')),
      { env },
    );
  }

  /** Reports the program, and each file that an argument names, such as a script. */
  async #addMaterials(context: FullBuildContext, searchPath: string | undefined): Promise<void> {
    const { directory, environment, addMaterial } = context;
    const [program = '', ...args] = this.#settings.command;
    const found = findProgram(program, searchPath ?? environment.PATH, directory);
    if ('path' in found) addMaterial(await fileMaterial(`program ${program}`, found.path, context));
    for (const arg of args) {
      if (!isAbsolute(arg) || placeholdersOf(arg).length > 0) continue;
      const state = await stat(arg).catch(() => undefined);
      if (state?.isFile()) addMaterial(await fileMaterial(`file ${arg}`, arg, context));
    }
  }
}

/** A placeholder. `${name}`, a variable of a shell, and `{{name}}`, a template, do not match. */
const PLACEHOLDER = /(?<![${]){([a-z][a-z0-9.-]*)}(?!})/g;

/** Shells whose argument after `-c` is a script. */
const SHELL = /^(?:ba|da|k|z)?sh$/;

function placeholdersOf(arg: string): string[] {
  return Array.from(arg.matchAll(PLACEHOLDER), ([, name = '']) => name);
}

/** The format of a placeholder `output.FORMAT`, which may be unknown. */
function formatOf(placeholder: string): string | undefined {
  return /^output\.(.*)$/.exec(placeholder)?.[1];
}

function writtenFormats({ command, formats }: CommandSettings): readonly ImageFormat[] {
  const names = command.slice(1).flatMap(placeholdersOf).map(formatOf);
  const written = new Set(names.filter(isImageFormat));
  return written.size === 0 ? (formats ?? []) : [...written];
}

/** Returns diagnostics of settings that the schema accepts. */
function* commandDiagnostics(settings: CommandSettings): Generator<Diagnostic> {
  const [program, ...args] = settings.command;
  if (!program) {
    const remedy = 'write a list: the program, its arguments';
    yield { pointer: '/command', reason: 'names no program', remedy };
    return;
  }
  const script = SHELL.test(basename(program)) ? args.findIndex((arg) => /^-[a-z]*c$/.test(arg)) + 1 : 0;
  for (const [index, arg] of args.entries()) {
    const pointer = `/command/${index + 1}`;
    for (const name of placeholdersOf(arg)) {
      const [reason, remedy] = placeholderProblem(name, settings.formats) ?? [];
      if (reason !== undefined && remedy !== undefined) yield { pointer, reason, remedy };
      if (script > 0 && index === script) {
        yield {
          pointer,
          reason: `has {${name}} in a shell script: the shell would run code that an image-id contains`,
          remedy: 'write "$1" there, and pass the placeholder as an argument after "sh" or another $0',
        };
      }
    }
  }
  if (writtenFormats(settings).length === 0) {
    const reason = 'does not name the formats that it writes';
    const remedy = 'pass {output.raw} or {output.qcow2} as an argument, or add "formats"';
    yield { pointer: '/command', reason, remedy };
  }
}

function placeholderProblem(
  name: string,
  formats: CommandSettings['formats'],
): readonly [reason: string, remedy: string] | undefined {
  if (['image-id', 'image-name', 'directory'].includes(name)) return undefined;
  const format = formatOf(name);
  if (format === undefined) {
    const remedy = 'use {output.FORMAT}, {image-id}, {image-name} or {directory}';
    return [`has the unknown placeholder {${name}}`, remedy];
  }
  if (!isImageFormat(format)) {
    return [`has {${name}}, which is not an image format`, `use one of ${FORMAT_NAMES.join(', ')}`];
  }
  if (!formats || formats.includes(format)) return undefined;
  const reason = `has {${name}}, but "formats" lacks ${format}: that file would be lost`;
  return [reason, `add ${format} to "formats", or remove "formats"`];
}
