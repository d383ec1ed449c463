import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { ManagerState, StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../configuration/gearman-server.ts';
import { readSite, runningJobsOf } from '../site/builder-status.ts';
import type { Work } from '../site/work.ts';

/** Time limit for the builders to answer a list, in milliseconds. */
const LIST_TIMEOUT = 1500;

/** Reads the records of the manager and, if something waits or runs, asks job servers and builders about it. */
export async function readState(
  configuration: Configuration,
  store: Pick<StateStore, 'read'>,
): Promise<ManagerState & { readonly work?: Work }> {
  const state = await store.read();
  const records = [...state.builds.values(), ...state.uploads.values()];
  if (!records.some((record) => record.state === 'building' || record.state === 'uploading')) return state;
  const work = await readWork(jobServers(configuration));
  return { ...(await store.read()), work }; // a job that has ended meanwhile would seem to wait
}

/** Asks job servers and builders for what waits and runs. Builders that do not answer in time are left out. */
export async function readWork(servers: readonly ServerAddress[]): Promise<Work> {
  const site = await readSite(servers, undefined, LIST_TIMEOUT).catch(() => undefined);
  return { jobs: runningJobsOf(site?.builders ?? []), functions: site?.functions };
}
