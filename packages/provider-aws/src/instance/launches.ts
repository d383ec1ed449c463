import type { KeyPairInfo } from '@aws-sdk/client-ec2';
import type { Logger } from '@nodepool-builder/image-builder';
import { IMAGE_TAGS, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { readTags } from '../amis.ts';
import type { AwsRegion } from '../aws-session.ts';
import type { AwsEntry } from '../aws-settings.ts';
import { type Ec2Instance, isGone, listInstances } from './ec2-instance.ts';
import { forgetPasswordKey } from './windows-password.ts';

/** Region in which one provider launches instances for one builder. */
export interface InstanceSite {
  readonly region: AwsRegion;
  readonly entry: AwsEntry;
  /** Digest of owner and provider. */
  readonly owner: string;
  /** Scope of the instances. Default: all scopes. */
  readonly scope: string | undefined;
  /** Max seconds between two polls of a pending resource. */
  readonly interval: number;
  readonly logger: Logger;
  /** Directory for the keys that decrypt passwords. */
  readonly directory: string;
}

/** Tags of instances, volumes, key pairs and captured images. */
export const INSTANCE_TAGS = {
  owner: 'nodepool_builder_owner',
  scope: 'nodepool_builder_scope',
  launch: 'nodepool_builder_launch',
  /** TCP port of the login. */
  port: 'nodepool_builder_port',
  /** Launch time in ISO 8601. */
  launchedAt: 'nodepool_builder_launched_at',
  /** Id of the captured instance. */
  capturedOf: 'nodepool_builder_instance',
} as const;

/** Record of a launch, stored in the tags of all its resources. */
export interface LaunchRecord {
  /** Name of the key pair, and client token of the launch. */
  readonly name: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  /** TCP port of the login. */
  readonly port: number;
}

/** Returns the tags of all resources of a builder. */
export function ownerTags({ entry, owner, scope }: InstanceSite): Record<string, string> {
  return {
    [IMAGE_TAGS.provider]: entry.name,
    [INSTANCE_TAGS.owner]: owner,
    ...(scope !== undefined && { [INSTANCE_TAGS.scope]: scope }),
  };
}

/** Returns the tags of a launch. */
export function launchTags(site: InstanceSite, launch: LaunchRecord): Record<string, string> {
  return {
    ...site.entry.tags,
    ...ownerTags(site),
    Name: `nodepool-builder ${launch.buildId}`,
    [IMAGE_TAGS.imageId]: launch.buildId,
    [INSTANCE_TAGS.launch]: launch.name,
    [INSTANCE_TAGS.port]: String(launch.port),
    [INSTANCE_TAGS.launchedAt]: launch.launchedAt.toISOString(),
  };
}

/** Builds filters for tags. */
export function tagFilters(tags: Readonly<Record<string, string>>): { Name: string; Values: string[] }[] {
  return Object.entries(tags).map(([name, value]) => ({
    Name: `tag:${name}`,
    Values: [value.replaceAll(/[*?\\]/g, String.raw`\$&`)],
  }));
}

/** A launch with at least one resource in the cloud. */
export interface FoundLaunch {
  readonly record: LaunchRecord;
  /** Id of the instance; undefined if the launch has none. */
  readonly instanceId: string | undefined;
}

/** Lists all launches of this builder for this provider, found by resource tags. */
export async function findLaunches(site: InstanceSite, signal: AbortSignal): Promise<FoundLaunch[]> {
  const filters = tagFilters(ownerTags(site));
  // Reverse order of creation, so that a running launch is always found.
  const instances = await listInstances(site.region, { Filters: filters }, signal);
  const keyPairs = await listKeyPairs(site, signal);
  const found = new Map<string, FoundLaunch>();
  for (const { Tags } of keyPairs) add(found, readTags(Tags), undefined);
  for (const instance of instances) {
    if (!isGone(instance)) add(found, readTags(instance.Tags), instance.InstanceId);
  }
  return [...found.values()];
}

function add(
  found: Map<string, FoundLaunch>,
  tags: Readonly<Record<string, string>>,
  instanceId: string | undefined,
): void {
  const { [INSTANCE_TAGS.launch]: name } = tags;
  if (name === undefined) return;
  const launchedAt = Date.parse(tags[INSTANCE_TAGS.launchedAt] ?? '');
  const record = {
    name,
    buildId: tags[IMAGE_TAGS.imageId] ?? name,
    launchedAt: new Date(Number.isFinite(launchedAt) ? launchedAt : 0),
    port: Number(tags[INSTANCE_TAGS.port] ?? 0),
  };
  found.set(name, { record, instanceId });
}

async function listKeyPairs(site: InstanceSite, signal: AbortSignal): Promise<readonly KeyPairInfo[]> {
  const { region } = site;
  const Filters = tagFilters(ownerTags(site));
  const { KeyPairs = [] } = await region.ec2(signal).describeKeyPairs({ Filters });
  return KeyPairs;
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
