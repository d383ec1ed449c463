import { createHash } from 'node:crypto';
import { IMAGE_TAGS } from '../image-tags.ts';

/** Record of a launch, stored in the tags of its resources. */
export interface LaunchRecord {
  /** Name that all resources of the launch share. */
  readonly name: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  /** TCP port of the login. */
  readonly port: number;
}

/** A launch with at least one resource in the cloud. */
export interface FoundLaunch {
  readonly record: LaunchRecord;
  /** Id of the machine; undefined if the launch has none. */
  readonly machineId: string | undefined;
}

/** Tag with the TCP port of the login. */
const PORT = 'nodepool_builder_port';
/** Tag with the launch time in ISO 8601. */
const LAUNCHED_AT = 'nodepool_builder_launched_at';

/** Returns the tags of a launch. */
export function launchTags(provider: string, launch: LaunchRecord): Record<string, string> {
  return {
    [IMAGE_TAGS.provider]: provider,
    [IMAGE_TAGS.imageId]: launch.buildId,
    [PORT]: String(launch.port),
    [LAUNCHED_AT]: launch.launchedAt.toISOString(),
  };
}

/** Reads the record of a launch from its tags. Missing tags are replaced, so that the launch can be removed. */
export function readLaunch(name: string, tags: Readonly<Record<string, unknown>>): LaunchRecord {
  const { [IMAGE_TAGS.imageId]: buildId = name, [PORT]: port = 0, [LAUNCHED_AT]: time } = tags;
  const launchedAt = Date.parse(String(time));
  return {
    name,
    buildId: String(buildId),
    launchedAt: new Date(Number.isFinite(launchedAt) ? launchedAt : 0),
    port: Number(port),
  };
}

/** Hex digits of the digest. */
const DIGITS = 12;

/**
 * Returns a digest that identifies owner and provider, because several builders may share an account, and several
 * entries an owner.
 */
export function ownerDigest(owner: string, provider: string): string {
  const text = JSON.stringify([owner, provider]);
  return createHash('sha256').update(text).digest('hex').slice(0, DIGITS);
}
