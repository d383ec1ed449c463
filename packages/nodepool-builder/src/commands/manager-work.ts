import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { ManagerState, StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../configuration/gearman-server.ts';
import { readSite, runningJobsOf } from '../site/builder-status.ts';
import type { Work } from '../site/work.ts';

/** Timeout for the builders' replies to a list request, in milliseconds. */
const LIST_TIMEOUT = 1500;

/** Reads the manager's records. If something waits or runs, it also queries job servers and builders. */
export async function readState(
  configuration: Configuration,
  store: Pick<StateStore, 'read'>,
): Promise<ManagerState & { readonly work?: Work }> {
  const state = await store.read();
  const records = [...state.builds.values(), ...state.uploads.values()];
  if (!records.some((record) => record.state === 'building' || record.state === 'uploading')) return state;
  const work = await readWork(jobServers(configuration));
  return { ...(await store.read()), work }; // otherwise a job that has just ended would seem to wait
}

/** Queries job servers and builders for waiting and running work. Builders that do not reply in time are left out. */
export async function readWork(servers: readonly ServerAddress[]): Promise<Work> {
  const site = await readSite(servers, undefined, LIST_TIMEOUT).catch(() => undefined);
  return { jobs: runningJobsOf(site?.builders ?? []), functions: site?.functions };
}
