import type { Command } from 'commander';
import type { Modules } from '../configuration/modules.ts';

/** Commands of one source file, which is loaded only when one of them is needed. All files take 0.3 s. */
interface CommandFile {
  /** Sentences of `--help`, by the command's usage. */
  readonly summaries: Readonly<Record<string, string>>;
  /** Imports the file, whose `register` adds the commands to the program. */
  readonly load: () => Promise<{
    readonly register: (program: Command, modules: () => Promise<Modules>) => void;
  }>;
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
        load: () => import('./serve.ts'),
      },
      { summaries: { gearmand: 'run a Gearman job server' }, load: () => import('./gearmand.ts') },
      {
        summaries: { 'validate [file...]': 'check configuration files' },
        load: () => import('./validate.ts'),
      },
      { summaries: { init: 'write a first configuration file' }, load: () => import('./init.ts') },
      {
        summaries: { doctor: 'check a whole site, and suggest what to do' },
        load: () => import('./doctor.ts'),
      },
      {
        summaries: { 'notify-test <name>': 'send a sample event to a receiver of notifications' },
        load: () => import('./notify-test.ts'),
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
        load: () => import('./jobs.ts'),
      },
      {
        summaries: { 'logs <id>': 'show the log of a build or of an upload, from any host' },
        load: () => import('./logs.ts'),
      },
      {
        summaries: { 'cancel <id>': 'stop a build or an upload that runs' },
        load: () => import('./cancel.ts'),
      },
      {
        summaries: { 'image-list': 'list images in providers, or at builders' },
        load: () => import('./image-list.ts'),
      },
    ],
  },
  {
    heading: 'Manager, which decides what is built, uploaded, kept and deleted:',
    files: [
      { summaries: { manage: 'run the manager' }, load: () => import('./manage.ts') },
      {
        summaries: {
          plan: 'show what the manager would do next, and why',
          'image-status [image-id]':
            'show the newest image of each disk image in each provider, or the origin of an image',
          'dib-image-list': 'list the builds and their state',
          'alien-image-list': 'list images without a record of the manager',
        },
        load: () => import('./manager-lists.ts'),
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
        load: () => import('./manager-requests.ts'),
      },
      {
        summaries: {
          'export-image-data <file>': "save the manager's records as JSON",
          'import-image-data <file>': "load the manager's records from JSON",
        },
        load: () => import('./manager-store.ts'),
      },
    ],
  },
  {
    heading: 'In a CI job, without daemon, Gearman or manager:',
    files: [
      { summaries: { 'build <diskimage>': 'build an image' }, load: () => import('./build.ts') },
      {
        summaries: { 'convert <file>': 'convert an image file to another format' },
        load: () => import('./convert.ts'),
      },
      { summaries: { 'upload <file>': 'upload an image file' }, load: () => import('./upload.ts') },
      { summaries: { latest: 'find the latest image in a provider' }, load: () => import('./latest.ts') },
      { summaries: { 'verify <image>': 'verify the origin of an image' }, load: () => import('./verify.ts') },
      {
        summaries: {
          prune: 'delete old images that "upload" uploaded',
          reap: 'remove what killed CI jobs left in a provider',
        },
        load: () => import('./cleanup.ts'),
      },
    ],
  },
  {
    heading: 'Help:',
    files: [
      {
        summaries: { 'completion <shell>': 'print a script that completes command lines in a shell' },
        load: () => import('./completion.ts'),
      },
      {
        summaries: { 'complete [word...]': 'print candidates for the last word of a command line' },
        load: () => import('./complete.ts'),
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

/** Name of a command, without its operands. */
export function nameOf(usage: string): string {
  return usage.split(' ', 1).join();
}
