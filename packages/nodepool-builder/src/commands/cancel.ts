import { jobServers } from '../configuration/gearman-server.ts';
import { cancel } from '../site/cancel.ts';
import { thisUser } from '../site/control-jobs.ts';
import { withStore } from '../site/state-view.ts';
import { configured } from './configured-command.ts';

/** `cancel`: stops a build or an upload, wherever it runs or waits. */
export const register = configured({
  name: 'cancel',
  description:
    'Stops a build or an upload that a builder runs, which then removes what it has made. Clients that wait for it see ' +
    'who cancelled it. The manager withdraws one that waits for a builder. It builds a disk image again when its next ' +
    'build is due after that, when its configuration changes, or after "rebuild", and uploads the next build.',
  argument: [
    '<id>',
    'image-id of a build, upload-id of an upload, or name of a disk image that is being built',
  ],
  example: 'debian-20161118140211-9f3c',
  run: async (site, _, id) => {
    const configuration = await site.configuration();
    const servers = jobServers(configuration);
    console.log(
      await cancel(servers, id, thisUser(), (work) => withStore(configuration, work, () => undefined)),
    );
  },
});
