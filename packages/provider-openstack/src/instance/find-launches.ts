import type { InstanceCloud } from './instance-cloud.ts';
import { type LaunchRecord, recordOfKeyPair, recordOfServer } from './launch-record.ts';
import { isGone } from './nova-server.ts';

/** A launch of which there is something in the cloud. */
export interface FoundLaunch {
  readonly record: LaunchRecord;
  /** Undefined where no server is left, or there is none yet. */
  readonly serverId: string | undefined;
}

type Seen = { readonly [Key in keyof FoundLaunch]: FoundLaunch[Key] | undefined };

/** All launches of this builder for this provider: what there is of any is named after it. */
export async function findLaunches(
  { compute, network, namePrefix }: InstanceCloud,
  signal: AbortSignal,
): Promise<readonly FoundLaunch[]> {
  // What is made last is asked for first: while a launch goes on, nothing is seen without what tells whose it is.
  const floatingIps = await network.floatingIps({}, signal);
  const servers = await compute.servers(namePrefix, signal);
  const keyPairs = await compute.keyPairs(signal);
  const found = new Map<string, Seen>();
  const add = (name: string, record: LaunchRecord | undefined, serverId?: string): void => {
    if (!name.startsWith(namePrefix)) return;
    const known = found.get(name);
    found.set(name, {
      record: known?.record ?? record,
      serverId: known?.serverId ?? serverId,
    });
  };
  for (const pair of keyPairs) add(pair.name, recordOfKeyPair(pair));
  for (const server of servers) {
    if (!isGone(server)) add(server.keyName ?? '', recordOfServer(server), server.id);
  }
  for (const { description } of floatingIps) add(description, undefined);
  return Array.from(found, ([name, { record = unknownLaunch(name), serverId }]) => ({ record, serverId }));
}

/** Somebody removed what told more. */
function unknownLaunch(name: string): LaunchRecord {
  return { name, buildId: name, launchedAt: new Date(0), port: 0 };
}
