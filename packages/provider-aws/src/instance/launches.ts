import {
  type FoundLaunch,
  type LaunchRecord,
  launchTags,
  type MachineSite,
  readLaunch,
} from '@nodepool-builder/image-builder/internal';
import { IMAGE_TAGS, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { exactFilter, readTags } from '../amis.ts';
import type { AwsRegion } from '../aws-session.ts';
import type { AwsEntry } from '../aws-settings.ts';
import { type Ec2Instance, isGone, listInstances } from './ec2-instance.ts';
import { forgetPasswordKey } from './windows-password.ts';

/** Region in which one provider launches instances for one builder. */
export interface InstanceSite extends MachineSite {
  readonly region: AwsRegion;
  readonly entry: AwsEntry;
  /** Digest of owner and provider. */
  readonly owner: string;
  /** Scope of the instances. Default: all scopes. */
  readonly scope: string | undefined;
  /** Directory for the keys that decrypt passwords. */
  readonly directory: string;
}

/** Tags of instances, volumes, key pairs and captured images. */
export const INSTANCE_TAGS = {
  owner: 'nodepool_builder_owner',
  scope: 'nodepool_builder_scope',
  launch: 'nodepool_builder_launch',
  /** Id of the captured instance. */
  capturedOf: 'nodepool_builder_instance',
} as const;

/** Returns the tags of all resources of a builder. */
export function ownerTags({ entry, owner, scope }: InstanceSite): Record<string, string> {
  return {
    [IMAGE_TAGS.provider]: entry.name,
    [INSTANCE_TAGS.owner]: owner,
    ...(scope !== undefined && { [INSTANCE_TAGS.scope]: scope }),
  };
}

/** Returns the tags of all resources of a launch. */
export function resourceTags(site: InstanceSite, launch: LaunchRecord): Record<string, string> {
  return {
    ...site.entry.tags,
    ...ownerTags(site),
    Name: `nodepool-builder ${launch.buildId}`,
    ...launchTags(site.entry.name, launch),
    [INSTANCE_TAGS.launch]: launch.name,
  };
}

/** Builds filters for tags. */
export function tagFilters(tags: Readonly<Record<string, string>>): { Name: string; Values: string[] }[] {
  return Object.entries(tags).map(([name, value]) => exactFilter(`tag:${name}`, [value]));
}

/** Lists all launches of this builder for this provider, found by resource tags. */
export async function findLaunches(site: InstanceSite, signal: AbortSignal): Promise<FoundLaunch[]> {
  const filters = tagFilters(ownerTags(site));
  // Reverse order of creation, so that a running launch is always found.
  const instances = await listInstances(site.region, { Filters: filters }, signal);
  const { KeyPairs: keyPairs = [] } = await site.region.ec2(signal).describeKeyPairs({ Filters: filters });
  const found = new Map<string, FoundLaunch>();
  const add = (tags: Readonly<Record<string, string>>, machineId?: string): void => {
    const { [INSTANCE_TAGS.launch]: name } = tags;
    if (name !== undefined) found.set(name, { record: readLaunch(name, tags), machineId });
  };
  for (const { Tags } of keyPairs) add(readTags(Tags));
  for (const instance of instances) {
    if (!isGone(instance)) add(readTags(instance.Tags), instance.InstanceId);
  }
  return [...found.values()];
}

/**
 * Terminates the instances of a launch and deletes its key pair. Does not wait for the termination, because an instance
 * that is shutting down always ends.
 *
 * @param instanceId if known, because a list may not contain the instance yet
 * @throws CloudError
 */
export async function removeLaunch(
  { region, directory }: InstanceSite,
  { name }: LaunchRecord,
  instanceId: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const ec2 = region.ec2(signal);
  const Filters = tagFilters({ [INSTANCE_TAGS.launch]: name });
  const listed: readonly Ec2Instance[] = await listInstances(region, { Filters }, signal);
  const ids = new Set(listed.filter((one) => !isGone(one)).flatMap(({ InstanceId: id }) => id ?? []));
  if (instanceId !== undefined) ids.add(instanceId);
  for (const id of ids) {
    await ec2.terminateInstances({ InstanceIds: [id] }).catch(unlessAbsent);
  }
  await forgetPasswordKey(directory, name);
  await ec2.deleteKeyPair({ KeyName: name }).catch(unlessAbsent);
}
