import { jobServers } from '../configuration/gearman-server.ts';
import { thisUser } from '../site/control-jobs.ts';
import { askManager, REQUESTS } from '../site/manager-requests.ts';
import { withStore } from '../site/state-view.ts';
import type { ConfiguredCommand } from './configured-command.ts';

/** The commands that only send a request to the manager, and print its result within seconds. */
export const MANAGER_REQUESTS: readonly ConfiguredCommand[] = REQUESTS.map(({ ask: _, ...row }) => ({
  ...row,
  run: async (site, _options, subject) => {
    const configuration = await site.configuration();
    const request = { configuration, servers: jobServers(configuration), by: thisUser() };
    await withStore(configuration, async (store) => {
      console.error(await askManager(row.name, subject, request, store));
    });
  },
}));
