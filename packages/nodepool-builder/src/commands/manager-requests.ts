import type { ManagerState, Request } from '@nodepool-builder/image-manager';
import type { Command } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { CommandError } from './command-error.ts';
import { withStore } from './manager-store.ts';
import { configOption } from './options.ts';

/** A command that leaves a request for the manager. */
interface RequestCommand {
  readonly name: string;
  readonly argument: readonly [syntax: string, description: string];
  readonly summary: string;
  readonly description: string;
  readonly example: string;
  /** The request; or why it makes no sense, and what to do. */
  readonly request: (subject: string, state: ManagerState, configuration: Configuration) => Request | string;
}

const COMMANDS: readonly RequestCommand[] = [
  {
    name: 'rebuild',
    argument: ['<diskimage>', 'name of the disk image'],
    summary: 'have an image built anew now',
    description: 'Has the manager build a disk image now, and upload it, however old the newest one is.',
    example: 'debian',
    request: (diskimage, _, { diskimages }) =>
      diskimages.some(({ name }) => name === diskimage)
        ? { kind: 'build', diskimage }
        : `disk image "${diskimage}" is not configured; there is ${listed(diskimages.map(({ name }) => name))}`,
  },
  {
    name: 'rollback',
    argument: ['<diskimage>', 'name of the disk image'],
    summary: 'go back to the image before the newest',
    description:
      'Withdraws the newest image of a disk image: the one before is in use again, and the withdrawn one is deleted ' +
      'wherever that one stands in for it.',
    example: 'debian',
    request: (diskimage, { builds }) =>
      [...builds.values()].some((build) => build.diskimage === diskimage)
        ? { kind: 'rollback', diskimage }
        : `there is no image of "${diskimage}"; dib-image-list shows what there is`,
  },
  {
    name: 'dib-image-delete',
    argument: ['<image-id>', 'id of the image, as dib-image-list shows it'],
    summary: 'delete a build and its uploads',
    description:
      'Has the manager delete an image: in all providers, even the last one there, and on disk. ' +
      'Another is built when that is due, or at once if there is none left.',
    example: 'debian-0000000042-k7f3q2xa',
    request: (imageId, { builds }) =>
      builds.get(imageId)?.state === 'ready'
        ? { kind: 'delete-build', imageId }
        : `there is no image ${imageId} that is ready; dib-image-list shows what there is`,
  },
  {
    name: 'upload-delete',
    argument: ['<upload-id>', 'id of the upload, as image-list shows it'],
    summary: 'delete an upload',
    description:
      'Has the manager delete one image in one provider. If it is still wanted there, it is uploaded anew.',
    example: '0000000043-k7f3q2xa',
    request: (uploadId, { uploads }) =>
      uploads.get(uploadId)?.state === 'ready'
        ? { kind: 'delete-upload', uploadId }
        : `there is no upload ${uploadId} that is ready; image-list shows what there is`,
  },
];

/** The commands that ask something of a manager; it does it within seconds, or as soon as it runs. */
export function registerManagerRequests(program: Command, builders: readonly string[]): void {
  for (const { name, argument, summary, description, example, request } of COMMANDS) {
    program
      .command(name)
      .summary(summary)
      .description(description)
      .argument(...argument)
      .addOption(configOption())
      .addHelpText('after', `\nExample:\n  $ nodepool-builder ${name} ${example} -c nodepool.yaml`)
      .action(async (subject: string, options: { config: string }) => {
        const { configuration } = await loadConfiguration(options.config, { builders });
        await withStore(configuration, async (store) => {
          const wanted = request(subject, await store.read(), configuration);
          if (typeof wanted === 'string') throw new CommandError(wanted);
          const number = await store.ask(wanted);
          console.error(
            `asked the manager (request ${number}); dib-image-list and image-list show what it does`,
          );
        });
      });
  }
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
