import type { DescribeInstancesRequest, Instance } from '@aws-sdk/client-ec2';
import type { InstanceState } from '@nodepool-builder/image-builder';
import { unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { AwsRegion } from '../aws-session.ts';
import type { AwsEntry } from '../aws-settings.ts';

/** An instance as described by EC2. */
export type Ec2Instance = Instance;

/** States by EC2 name. Any other state means that a build cannot use the instance. */
const STATES: Readonly<Record<string, InstanceState>> = {
  pending: 'starting',
  running: 'running',
  stopping: 'running',
  stopped: 'stopped',
};

export function stateOf({ State: state }: Ec2Instance): InstanceState {
  return STATES[state?.Name ?? ''] ?? 'failed';
}

/** Returns whether an instance is terminated or shutting down. EC2 still lists it for an hour. */
export function isGone({ State: state }: Ec2Instance): boolean {
  return state?.Name === 'terminated' || state?.Name === 'shutting-down';
}

/** Formats EC2's reason for a state, after a colon. Empty if EC2 gives none. */
export function stateReason({ StateReason: reason }: Ec2Instance): string {
  return reason?.Message ? `: ${reason.Message}` : '';
}

/** Chooses the login address. */
export function addressOf(
  { PublicIpAddress: publicV4, PrivateIpAddress: privateV4, Ipv6Address: v6 }: Ec2Instance,
  { 'use-internal-ip': isInternal, 'public-ipv6': withV6 }: Pick<AwsEntry, 'use-internal-ip' | 'public-ipv6'>,
): string | undefined {
  if (isInternal) return privateV4 ?? v6;
  return publicV4 ?? (withV6 ? v6 : undefined) ?? privateV4 ?? v6;
}

/** Lists instances from all pages. */
export async function listInstances(
  region: AwsRegion,
  query: DescribeInstancesRequest,
  signal: AbortSignal,
): Promise<Ec2Instance[]> {
  return await region.list(
    'DescribeInstances',
    (page) => region.ec2(signal).describeInstances({ ...query, ...page }),
    ({ Reservations }) => Reservations?.flatMap(({ Instances }) => Instances ?? []),
  );
}

/** Returns an instance by id; undefined if EC2 does not know it. */
export async function getInstance(
  region: AwsRegion,
  id: string,
  signal: AbortSignal,
): Promise<Ec2Instance | undefined> {
  const found = await listInstances(region, { InstanceIds: [id] }, signal).catch(unlessAbsent);
  return found?.[0];
}
