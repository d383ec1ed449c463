import { readBuilderStatuses } from '../control/builder-status.ts';
import { cancelJob, thisUser } from '../control/control-jobs.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { CommandError } from './output.ts';

/** `cancel`: stops a build or an upload that runs at a builder. */
export const CANCEL: ConfiguredCommand = {
  name: 'cancel',
  description:
    'Stops a build or an upload that runs at a builder, which then removes what it has made. Clients that wait for it learn ' +
    'who cancelled it. The manager tries again later, as after a failure, unless the disk image or the provider is paused.',
  argument: ['<id>', 'image-id of a build, or upload-id of an upload'],
  example: 'debian-20161118140211-9f3c',
  run: async (configuration, _, id) => {
    const servers = jobServers(configuration);
    const jobs = (await readBuilderStatuses(servers)).flatMap((builder) => builder.jobs);
    const job = jobs.find((one) => (one.kind === 'build' ? one['image-id'] : one['upload-id']) === id);
    if (job === undefined) {
      const remedy = 'compare the id with "dib-image-list" and "image-list"';
      throw new CommandError(`no builder runs a build or an upload with the id ${id}; ${remedy}`, {
        exitReason: 'not-found',
      });
    }
    await cancelJob(servers, job['image-id'], thisUser(), job['upload-id']);
    console.log(`${job.kind} ${id} is cancelled`);
  },
};
