import type { Command } from 'commander';
import type { Modules } from '../configuration/modules.ts';
import type { ConfiguredCommand } from './configured-command.ts';

/** Adds commands with their options, arguments and actions to the program. */
type Register = (program: Command, modules: Modules) => void;

/** Commands of one source file, which is loaded only for them: `--help` and each command start faster. */
type CommandFile = FileOfCommands &
  (
    | { readonly load: () => Promise<Register> }
    /** Of commands that need no module. */
    | { readonly loadPlain: () => Promise<(program: Command) => void> }
    /** Of commands that need the modules only once they run. */
    | { readonly loadConfigured: () => Promise<readonly ConfiguredCommand[]> }
  );

interface FileOfCommands {
  /** Sentences of `--help`, by the name of the command with its operands. */
  readonly summaries: Readonly<Record<string, string>>;
  /** Whether the commands need the options of all others. */
  readonly needsAll?: true;
  /** Whether `--help` leaves the commands out. */
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
        summaries: { serve: 'do the jobs of Gearman; runs if there is no command' },
        load: async () => (await import('./daemon.ts')).registerServe,
      },
      {
        summaries: { gearmand: 'run a Gearman job server' },
        loadPlain: async () => (await import('./gearmand.ts')).registerGearmand,
      },
      {
        summaries: { 'validate [file...]': 'check configuration files' },
        load: async () => (await import('./validate.ts')).registerValidate,
      },
      {
        summaries: { init: 'write a first configuration file' },
        load: async () => (await import('./init.ts')).registerInit,
      },
      {
        summaries: { doctor: 'check a whole site, and say what to do' },
        load: async () => (await import('./doctor.ts')).registerDoctor,
      },
      {
        summaries: { 'notify-test <name>': 'send a sample event to a receiver of notifications' },
        load: async () => (await import('./notify-test.ts')).registerNotifyTest,
      },
    ],
  },
  {
    heading: 'Jobs, which a running builder does:',
    files: [
      {
        summaries: {
          'image-build <diskimage>': 'have a builder build an image',
          'image-upload <image-id>': 'have the builder that holds an image upload it',
          'image-delete <image-id>': 'have the builder that holds an image delete its files',
        },
        loadConfigured: async () => (await import('./jobs.ts')).JOB_COMMANDS,
      },
      {
        summaries: { 'logs <id>': 'show the log of a build or of an upload, from any host' },
        loadConfigured: async () => [(await import('./logs.ts')).LOGS],
      },
      {
        summaries: { 'cancel <id>': 'stop a build or an upload that runs' },
        loadConfigured: async () => [(await import('./cancel.ts')).CANCEL],
      },
      {
        summaries: { 'image-list': 'list images in providers, or at builders' },
        loadConfigured: async () => [(await import('./image-list.ts')).IMAGE_LIST],
      },
    ],
  },
  {
    heading: 'Manager, which decides what is built, uploaded, kept and deleted:',
    files: [
      {
        summaries: { manage: 'run the manager' },
        load: async () => (await import('./manage.ts')).registerManage,
      },
      {
        summaries: {
          plan: 'show what the manager would do next, and why',
          'image-status [image-id]':
            'show the newest image of each disk image in each provider, or where one comes from',
          'dib-image-list': 'list the builds and their state',
          'alien-image-list': 'list images that are in no record of the manager',
        },
        loadConfigured: async () => (await import('./manager-lists.ts')).MANAGER_LISTS,
      },
      {
        summaries: {
          'rebuild <diskimage>': 'have an image built and uploaded now',
          'image-pause <diskimage>': 'have an image neither built nor uploaded for now',
          'image-unpause <diskimage>': 'have a paused image built and uploaded again',
          'rollback <diskimage>': 'go back to the image before the newest',
          'dib-image-delete <image-id>': 'have an image deleted everywhere',
          'upload-delete <upload-id>': 'have an image deleted from one provider',
        },
        loadConfigured: async () => (await import('./manager-requests.ts')).MANAGER_REQUESTS,
      },
      {
        summaries: {
          'export-image-data <file>': "save the manager's records as JSON",
          'import-image-data <file>': "load the manager's records from JSON",
        },
        loadConfigured: async () => (await import('./manager-store.ts')).IMAGE_DATA,
      },
    ],
  },
  {
    heading: 'In a CI job, without daemon, Gearman or manager:',
    files: [
      {
        summaries: { 'build <diskimage>': 'build an image' },
        load: async () => (await import('./build.ts')).registerBuild,
      },
      {
        summaries: { 'convert <file>': 'convert an image file to another format' },
        load: async () => (await import('./convert.ts')).registerConvert,
      },
      {
        summaries: { 'upload <file>': 'upload an image file' },
        load: async () => (await import('./upload.ts')).registerUpload,
      },
      {
        summaries: { latest: 'find the latest image in a provider' },
        load: async () => (await import('./latest.ts')).registerLatest,
      },
      {
        summaries: { 'verify <image>': 'check where an image comes from' },
        load: async () => (await import('./verify.ts')).registerVerify,
      },
      {
        summaries: {
          prune: 'delete old images that "upload" uploaded',
          reap: 'remove what killed CI jobs left in a provider',
        },
        load: async () => (await import('./cleanup.ts')).registerCleanup,
      },
    ],
  },
  {
    heading: 'Help:',
    files: [
      {
        summaries: { 'completion <shell>': 'print a script that completes command lines in a shell' },
        loadPlain: async () => (await import('./completion.ts')).registerCompletion,
        needsAll: true,
      },
      {
        summaries: { 'completion-names <kind>': 'print names of the configuration file' },
        loadPlain: async () => (await import('./completion-names.ts')).registerCompletionNames,
        isHidden: true,
      },
    ],
  },
];

/** Commands that delete images. No error suggests one of them: who mistypes another command may follow the hint. */
export const DELETING_COMMANDS: ReadonlySet<string> = new Set([
  'image-delete',
  'dib-image-delete',
  'upload-delete',
  'rollback',
  'prune',
  'reap',
]);

/** Whether a command line needs the options and the action of a command. */
export function neededBy(args: readonly string[]): (command: string) => boolean {
  const files = COMMAND_GROUPS.flatMap((group) => group.files);
  const needsAll = files.some(
    (file) =>
      file.needsAll &&
      Object.keys(file.summaries)
        .map(nameOf)
        .some((name) => args.includes(name)),
  );
  return (command) => needsAll || args.includes(command);
}

/** Name of a command, without its operands. */
export function nameOf(usage: string): string {
  return usage.split(' ', 1).join();
}
