import { GearmanError } from '@nodepool-builder/gearman-node';
import { IMAGE_BUILDERS, type ImageBuilderClass, ImageError } from '@nodepool-builder/image-builder';
import { Command, CommanderError } from 'commander';
import { registerAlienImageList } from './commands/alien-image-list.ts';
import { CommandError } from './commands/command-error.ts';
import { registerDaemon } from './commands/daemon.ts';
import { registerDibImageList } from './commands/dib-image-list.ts';
import { registerGearmand } from './commands/gearmand.ts';
import { passGeneralOptions } from './commands/general-options.ts';
import { registerImageBuild } from './commands/image-build.ts';
import { registerImageData } from './commands/image-data.ts';
import { registerImageDelete } from './commands/image-delete.ts';
import { registerImageList } from './commands/image-list.ts';
import { registerImageStatus } from './commands/image-status.ts';
import { registerImageUpload } from './commands/image-upload.ts';
import { registerLatest } from './commands/latest.ts';
import { completeLongOptions } from './commands/long-options.ts';
import { registerManage } from './commands/manage.ts';
import { registerManagerRequests } from './commands/manager-requests.ts';
import { registerPlan } from './commands/plan.ts';
import { registerPrune } from './commands/prune.ts';
import { registerReap } from './commands/reap.ts';
import { registerUpload } from './commands/upload.ts';
import { registerValidate } from './commands/validate.ts';
import { ConfigurationError } from './configuration/fault.ts';
import { packageVersion } from './version.ts';

/** Settings of {@link main}. */
export interface MainOptions {
  /** Builders of your own, by the name that `diskimages[].builder` gives them. */
  readonly builders?: Readonly<Record<string, ImageBuilderClass>>;
}

/** What argparse, and so the Python builder, exits with when the command line is wrong. */
const USAGE_ERROR = 2;

/** Umask of the daemon and its children: file modes in an image must not depend on the caller's. */
const UMASK = 0o022;

/**
 * The command `nodepool-builder`. A program that brings builders of its own calls it with them, and has every
 * option and command that nodepool-builder has.
 *
 * @param argv the arguments, without node and the script.
 * @returns the exit code: 0, 1 for a failure, 2 for a wrong command line.
 */
export async function main(argv: readonly string[], options: MainOptions = {}): Promise<number> {
  process.umask(UMASK);
  const program = createProgram({ ...IMAGE_BUILDERS, ...options.builders });
  try {
    await program.parseAsync(completeLongOptions(program, argv), { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_ERROR;
    // Imported on demand: a builder alone starts faster without it.
    const { StoreError } = await import('@nodepool-builder/image-manager');
    const { OpenStackError } = await import('@nodepool-builder/image-providers');
    const types = [CommandError, ConfigurationError, GearmanError, ImageError, OpenStackError, StoreError];
    const known = types.some((type) => error instanceof type);
    console.error(known && error instanceof Error ? `nodepool-builder: ${error.message}` : error);
    return 1;
  }
}

/** The options and commands of `nodepool-builder`. */
export function createProgram(builders: Readonly<Record<string, ImageBuilderClass>>): Command {
  const names = Object.keys(builders);
  const program = new Command('nodepool-builder')
    .description('Makes VM images, keeps them, and uploads them, as Gearman jobs ask for it.')
    .version(packageVersion(), '--version')
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError('(--help explains the options)')
    .addHelpText('after', EXAMPLES);
  registerDaemon(program, builders);
  registerImageBuild(program, names);
  registerImageUpload(program, names);
  registerImageDelete(program, names);
  registerImageList(program, names);
  registerManage(program, names);
  registerPlan(program, names);
  registerImageStatus(program, names);
  registerDibImageList(program, names);
  registerAlienImageList(program, names);
  registerManagerRequests(program, names);
  registerImageData(program, names);
  registerUpload(program, names);
  registerLatest(program, names);
  registerPrune(program, names);
  registerReap(program, names);
  registerValidate(program, names);
  registerGearmand(program);
  passGeneralOptions(program);
  return program;
}

const EXAMPLES = `
An option stands before or after a command. A command refuses options that it does not take.

Without a command it serves: in the background, or with -d in the foreground. With --all-in-one it also decides what is
built, uploaded, kept and deleted; on several hosts that is the work of the command manage.

Examples:
  $ nodepool-builder validate -c nodepool.yaml
  $ nodepool-builder -d -c nodepool.yaml
  $ nodepool-builder image-build debian -c nodepool.yaml
  $ nodepool-builder image-upload debian-20161118140211-9f3c --provider local -c nodepool.yaml`;
