import type { SoakCloud } from '../soak/soak-cloud.ts';
import { awsCloud } from './aws-cloud.ts';
import { azureCloud } from './azure-cloud.ts';
import { directoryCloud } from './directory-cloud.ts';
import { gceCloud } from './gce-cloud.ts';
import { ociCloud } from './oci-cloud.ts';
import { s3Cloud } from './s3-cloud.ts';

/**
 * Opens a cloud without images.
 *
 * @param faultRate fraction of requests that fail, from 0 to 1
 */
type OpenCloud = (faultRate: number) => Promise<SoakCloud>;

/** All clouds that can be soaked, by the type of their provider. */
export const CLOUDS: Readonly<Record<string, OpenCloud>> = {
  aws: awsCloud,
  azure: azureCloud,
  directory: directoryCloud,
  gce: gceCloud,
  oci: ociCloud,
  s3: s3Cloud,
};

/** Opens clouds by name. Closes the open ones if another cannot be opened. */
export async function openClouds(names: readonly string[], faultRate: number): Promise<readonly SoakCloud[]> {
  const opened = await Promise.allSettled(names.map(async (name) => await CLOUDS[name]?.(faultRate)));
  const failure = opened.find((each) => each.status === 'rejected');
  const clouds = opened.flatMap((each) => (each.status === 'fulfilled' ? (each.value ?? []) : []));
  if (failure === undefined) return clouds;
  for (const cloud of clouds) await cloud.close?.();
  throw failure.reason;
}
