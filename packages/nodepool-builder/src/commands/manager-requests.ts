import { jobServers } from '../configuration/gearman-server.ts';
import { thisUser } from '../site/control-jobs.ts';
import { askManager, REQUESTS } from '../site/manager-requests.ts';
import { withStore } from '../site/state-view.ts';
import { type ConfiguredCommand, configured } from './configured-command.ts';

/** The commands that only send a request to the manager, and print its result within seconds. */
export const register = configured(
  ...REQUESTS.map(
    ({ ask: _, ...row }): ConfiguredCommand => ({
      ...row,
      run: async (site, _options, subject) => {
        const configuration = await site.configuration();
        const request = { configuration, servers: jobServers(configuration), by: thisUser() };
        await withStore(configuration, async (store) => {
          console.error(await askManager(row.name, subject, request, store));
        });
      },
    }),
  ),
);
