import type { Command } from 'commander';
import type { Modules } from '../configuration/modules.ts';
import type { ConfiguredCommand } from './configured-command.ts';

/** Adds commands with their options, arguments and actions to the program. */
type Register = (program: Command, modules: () => Promise<Modules>) => void | Promise<void>;

/** Commands of one source file, which is loaded only when one of them is needed. All files take 0.3 s. */
interface CommandFile {
  /** Sentences of `--help`, by the command's usage. */
  readonly summaries: Readonly<Record<string, string>>;
  readonly load: () => Promise<Register>;
  /** `--help` leaves the commands out. */
  readonly isHidden?: true;
}

/** A heading of `--help`, with its commands. */
interface CommandGroup {
  readonly heading: string;
  readonly files: readonly CommandFile[];
}

/** All commands, in the order of `--help`. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    heading: 'Daemon:',
    files: [
      {
        summaries: { serve: 'run the jobs of Gearman; runs if there is no command' },
        load: async () => withModules((await import('./daemon.ts')).registerServe),
      },
      {
        summaries: { gearmand: 'run a Gearman job server' },
        load: async () => (await import('./gearmand.ts')).registerGearmand,
      },
      {
        summaries: { 'validate [file...]': 'check configuration files' },
        load: async () => withModules((await import('./validate.ts')).registerValidate),
      },
      {
        summaries: { init: 'write a first configuration file' },
        load: async () => (await import('./init.ts')).registerInit,
      },
      {
        summaries: { doctor: 'check a whole site, and suggest what to do' },
        load: async () => withModules((await import('./doctor.ts')).registerDoctor),
      },
      {
        summaries: { 'notify-test <name>': 'send a sample event to a receiver of notifications' },
        load: async () => withModules((await import('./notify-test.ts')).registerNotifyTest),
      },
    ],
  },
  {
    heading: 'Jobs, which a running builder runs:',
    files: [
      {
        summaries: {
          'image-build <diskimage>': 'have a builder build an image',
          'image-upload <image-id>': 'have the builder that has an image upload it',
          'image-delete <image-id>': 'have the builder that has an image delete its files',
        },
        load: async () => configured((await import('./jobs.ts')).JOB_COMMANDS),
      },
      {
        summaries: { 'logs <id>': 'show the log of a build or of an upload, from any host' },
        load: async () => configured([(await import('./logs.ts')).LOGS]),
      },
      {
        summaries: { 'cancel <id>': 'stop a build or an upload that runs' },
        load: async () => configured([(await import('./manager-requests.ts')).CANCEL]),
      },
      {
        summaries: { 'image-list': 'list images in providers, or at builders' },
        load: async () => configured([(await import('./image-list.ts')).IMAGE_LIST]),
      },
    ],
  },
  {
    heading: 'Manager, which decides what is built, uploaded, kept and deleted:',
    files: [
      {
        summaries: { manage: 'run the manager' },
        load: async () => withModules((await import('./manage.ts')).registerManage),
      },
      {
        summaries: {
          plan: 'show what the manager would do next, and why',
          'image-status [image-id]':
            'show the newest image of each disk image in each provider, or the origin of an image',
          'dib-image-list': 'list the builds and their state',
          'alien-image-list': 'list images without a record of the manager',
        },
        load: async () => configured((await import('./manager-lists.ts')).MANAGER_LISTS),
      },
      {
        summaries: {
          'rebuild <diskimage>': 'have an image built and uploaded now',
          'image-pause <diskimage>': 'pause the builds and uploads of a disk image',
          'image-unpause <diskimage>': 'resume the builds and uploads of a disk image',
          'rollback <diskimage>': 'go back to the previous image',
          'dib-image-delete <image-id>': 'have an image deleted everywhere',
          'upload-delete <upload-id>': 'have an image deleted from one provider',
        },
        load: async () => configured((await import('./manager-requests.ts')).MANAGER_REQUESTS),
      },
      {
        summaries: {
          'export-image-data <file>': "save the manager's records as JSON",
          'import-image-data <file>': "load the manager's records from JSON",
        },
        load: async () => configured((await import('./manager-store.ts')).IMAGE_DATA),
      },
    ],
  },
  {
    heading: 'In a CI job, without daemon, Gearman or manager:',
    files: [
      {
        summaries: { 'build <diskimage>': 'build an image' },
        load: async () => withModules((await import('./build.ts')).registerBuild),
      },
      {
        summaries: { 'convert <file>': 'convert an image file to another format' },
        load: async () => withModules((await import('./convert.ts')).registerConvert),
      },
      {
        summaries: { 'upload <file>': 'upload an image file' },
        load: async () => withModules((await import('./upload.ts')).registerUpload),
      },
      {
        summaries: { latest: 'find the latest image in a provider' },
        load: async () => withModules((await import('./latest.ts')).registerLatest),
      },
      {
        summaries: { 'verify <image>': 'verify the origin of an image' },
        load: async () => withModules((await import('./verify.ts')).registerVerify),
      },
      {
        summaries: {
          prune: 'delete old images that "upload" uploaded',
          reap: 'remove what killed CI jobs left in a provider',
        },
        load: async () => withModules((await import('./cleanup.ts')).registerCleanup),
      },
    ],
  },
  {
    heading: 'Help:',
    files: [
      {
        summaries: { 'completion <shell>': 'print a script that completes command lines in a shell' },
        load: async () => (await import('./completion.ts')).registerCompletion,
      },
      {
        summaries: { 'complete [word...]': 'print candidates for the last word of a command line' },
        load: async () => (await import('./complete.ts')).registerComplete,
        isHidden: true,
      },
    ],
  },
];

/**
 * Commands that delete images. Errors do not suggest them, because a user who mistypes another command may follow the
 * hint.
 */
export const DELETING_COMMANDS: ReadonlySet<string> = new Set([
  'image-delete',
  'dib-image-delete',
  'upload-delete',
  'rollback',
  'prune',
  'reap',
]);

/** Registers commands whose options or actions need the modules. */
function withModules(register: (program: Command, modules: Modules) => void): Register {
  return async (program, modules) => register(program, await modules());
}

function configured(commands: readonly ConfiguredCommand[]): Register {
  return async (program, modules) => {
    const { registerConfigured } = await import('./configured-command.ts');
    registerConfigured(program, modules, commands);
  };
}

/** Name of a command, without its operands. */
export function nameOf(usage: string): string {
  return usage.split(' ', 1).join();
}
