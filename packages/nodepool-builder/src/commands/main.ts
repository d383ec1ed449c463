import { homedir } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { styleText } from 'node:util';
import type { ImageBuilderClass } from '@nodepool-builder/image-builder';
import { Command, CommanderError } from 'commander';
import type { Module, Modules } from '../configuration/modules.ts';
import { CommandError } from '../terms/command-error.ts';
import { EXIT_CODE_LINES, EXIT_CODES, exitReasonOf } from '../terms/exit-codes.ts';
import { ModuleError } from '../terms/module-error.ts';
import { guardConsole, oneLine } from '../terms/printable.ts';
import { packageVersion } from '../terms/version.ts';
import { ConfigurationError } from '../yaml/diagnostic.ts';
import { COMMAND_GROUPS, nameOf } from './command-table.ts';
import { completeLongOptions, passGeneralOptions, withCommand, withSafeHint } from './global-options.ts';
import { exampleOf } from './options.ts';
import { addServeOptions } from './serve-options.ts';

/** Settings of {@link main}. */
export interface MainOptions {
  /** Modules in addition to the ones that come with nodepool-builder. */
  readonly modules?: Iterable<Module>;
  /** Builders without settings of their own, by their type in `diskimages[].builder`. */
  readonly builders?: Readonly<Record<string, ImageBuilderClass>>;
}

/** Umask of the daemon and its children. File modes in an image must not depend on the caller's umask. */
const UMASK = 0o022;

/**
 * Runs the command `nodepool-builder`, with modules or builders of the calling program.
 *
 * @param argv the arguments, without node and the script.
 * @returns the exit code, one of {@link EXIT_CODES}
 */
export async function main(argv: readonly string[], options: MainOptions = {}): Promise<number> {
  process.umask(UMASK);
  ensureHome();
  const releaseConsole = guardConsole();
  for (const stream of [process.stdout, process.stderr]) {
    stream.off('error', keepOutputError).on('error', keepOutputError); // only once, even if a program calls this several times
  }
  outputErrors.length = 0;
  try {
    const code = await run(argv, options);
    await setImmediate(); // streams report their errors later
    const [outputError] = outputErrors;
    if (outputError === undefined) return code;
    console.error(
      `nodepool-builder: cannot write the output: ${outputError.message}; free space, or redirect it elsewhere`,
    );
    return code === EXIT_CODES.success.code ? EXIT_CODES.failed.code : code;
  } finally {
    releaseConsole();
  }
}

async function run(argv: readonly string[], options: MainOptions): Promise<number> {
  try {
    const outline = await createProgram(options, () => false);
    const args = withCommand(outline, completeLongOptions(outline, argv));
    const isNeeded = (command: string): boolean => args.includes(command);
    const program = outline.commands.some((command) => isNeeded(command.name()))
      ? await createProgram(options, isNeeded)
      : outline;
    await program.parseAsync(args, { from: 'user' });
    return EXIT_CODES.success.code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODES.usage.code;
    if (error === outputErrors[0]) return EXIT_CODES.failed.code;
    return reportError(error);
  }
}

/**
 * Prints a command's error. An error in a file begins with `file:line:column`, as editors and CI systems expect it.
 *
 * @returns the exit code
 */
function reportError(error: unknown): number {
  if (!isExpected(error)) console.error(error);
  else if (error instanceof ConfigurationError) console.error(error.message);
  else if (error.message !== '') {
    console.error(
      `${styleText('red', 'nodepool-builder:', { stream: process.stderr })} ${oneLine(error.message)}`,
    );
  }
  return EXIT_CODES[exitReasonOf(error)].code;
}

/**
 * Returns whether the message is enough for a user. Typed errors of packages and plugins have a boolean `retriable`,
 * errors of commands an `exitReason`, and errors of the operating system a `syscall`, which the message names.
 */
function isExpected(error: unknown): error is Error {
  if (error instanceof ConfigurationError || error instanceof ModuleError) return true;
  if (!(error instanceof Error)) return false;
  return (
    'exitReason' in error ||
    'syscall' in error ||
    ('retriable' in error && typeof error.retriable === 'boolean')
  );
}

/**
 * Sets HOME as bash does for a user without HOME and without an entry in passwd, because programs and SDKs look for
 * files there.
 */
function ensureHome(): void {
  try {
    if (homedir() !== '') return;
  } catch {} // the user has neither
  process.env.HOME = '/';
}

/**
 * @throws CommandError if the working directory has been removed, because then no relative path can be resolved and no
 * program started
 */
function checkWorkingDirectory(): void {
  try {
    process.cwd();
  } catch (cause) {
    throw new CommandError('the working directory has been removed; change to another one', 'failed', {
      cause,
    });
  }
}

/** Errors of standard output and standard error during this call of {@link main}. */
const outputErrors: Error[] = [];

/**
 * A reader that ends early, such as `head` or a logger, or a full disk must not end a command before its cleanup. The
 * output that a reader does not read is not needed.
 */
function keepOutputError(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') outputErrors.push(error);
}

/**
 * Creates the options and commands of `nodepool-builder`, in the groups that `--help` shows.
 *
 * @param isNeeded returns whether a command needs its options and its action. Default: all do. Other commands get only
 * their sentence.
 */
export async function createProgram(
  options: MainOptions = {},
  isNeeded: (command: string) => boolean = () => true,
): Promise<Command> {
  const program = new Command('nodepool-builder')
    .description('Builds VM images, stores them, and uploads them to clouds.')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .enablePositionalOptions()
    .configureHelp({
      styleTitle: (title) => styleText('bold', title, { validateStream: false }),
      subcommandTerm: (command) =>
        `${command.name()} ${command.usage().replace(/^\[options\] ?/, '')}`.trimEnd(),
    })
    .configureOutput({
      outputError: (text, write) => {
        const error = styleText('red', 'error:', { stream: process.stderr });
        write(withSafeHint(program, text).replace(/^error:/, error));
      },
    })
    .addHelpText('after', NOTES)
    .hook('preAction', checkWorkingDirectory)
    .optionsGroup('Options of "serve", which runs if there is no command:');
  addServeOptions(program);
  let modules: Promise<Modules> | undefined;
  const knownModules = (): Promise<Modules> => {
    modules ??= loadModules(options);
    return modules;
  };
  for (const { heading, files } of COMMAND_GROUPS) {
    program.commandsGroup(heading);
    for (const file of files) {
      const { summaries, isHidden = false } = file;
      const names = Object.keys(summaries).map(nameOf);
      if (names.some(isNeeded)) {
        const { register } = await file.load();
        register(program, knownModules);
      } else {
        for (const usage of Object.keys(summaries)) program.command(usage, { hidden: isHidden });
      }
      for (const [usage, summary] of Object.entries(summaries)) {
        program.commands.find((command) => command.name() === nameOf(usage))?.summary(summary);
      }
    }
  }
  program.helpCommand('help [command]', 'explain a command');
  passGeneralOptions(program);
  for (const command of [program, ...program.commands]) {
    const usage = command.createHelp().commandUsage(command);
    command.showHelpAfterError(`Usage: ${usage}\n(--help explains the options)`);
  }
  return program;
}

async function loadModules({ modules = [], builders = {} }: MainOptions): Promise<Modules> {
  const { Modules: Known } = await import('../configuration/modules.ts');
  return Known.builtIn.with(modules).withBuilders(builders);
}

const NOTES = `
Similar commands:
  image-build       has a running builder build an image, which it keeps
  build             builds an image here, and leaves its files in a directory
  rebuild           has the manager build and upload an image where it is used
  image-upload      has the builder that holds an image upload it
  upload            uploads an image file from here
  image-delete      has the builder that holds an image delete its files
  upload-delete     has the manager delete one image from one provider
  dib-image-delete  has the manager delete an image everywhere
  prune             deletes old images that "upload" uploaded

An option may stand before or after a command. A command refuses options that
it does not take.

Exit codes:
${EXIT_CODE_LINES.join('\n')}
${exampleOf(
  'validate -c nodepool.yaml',
  '-d -c nodepool.yaml',
  'image-build debian -c nodepool.yaml',
  'image-upload debian-20161118140211-9f3c --provider local -c nodepool.yaml',
)}`;
