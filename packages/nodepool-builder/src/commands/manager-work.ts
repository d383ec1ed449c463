import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { ManagerState, StateStore } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../configuration/gearman-server.ts';
import { readSite, runningJobsOf } from '../site/builder-status.ts';
import { isUnfinished } from '../site/served-request.ts';
import { type Work, workOf } from '../site/work.ts';
import { errorLine, warn } from '../terms/command-error.ts';

/** Timeout for the builders' replies to a list request, in milliseconds. */
const LIST_TIMEOUT = 1500;

/** Reads the records of the manager and, if these may not say all, queries job servers and builders. */
export async function readState(
  configuration: Configuration,
  store: Pick<StateStore, 'read'>,
): Promise<ManagerState & { readonly work?: Work }> {
  const state = await store.read();
  const records = [...state.builds.values(), ...state.uploads.values()];
  if (!records.some((record) => /^(?:building|uploading|ready)$/.test(record.state))) return state;
  const { problem, ...work } = await readWork(jobServers(configuration));
  if (problem !== undefined && records.some(isUnfinished))
    warn(`${problem}; the list shows only what the manager recorded`);
  return { ...(await store.read()), work }; // otherwise a job that has just ended would seem to wait
}

/**
 * Queries job servers and builders for the jobs that wait and run. Builders that do not reply in time are left out.
 *
 * @returns with a `problem` if no job server replies
 */
export async function readWork(
  servers: readonly ServerAddress[],
): Promise<Work & { readonly problem?: string }> {
  try {
    const { builders, functions } = await readSite(servers, undefined, LIST_TIMEOUT);
    return workOf(runningJobsOf(builders), functions, builders.length);
  } catch (error) {
    return { ...workOf(new Map(), undefined), problem: errorLine(error) };
  }
}
