import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LaunchRequest } from '@nodepool-builder/image-builder';

/** Label of the file system, by which it is found. */
export const CONFIG_DRIVE_LABEL = 'config-2';

/**
 * Writes the files of an OpenStack config drive, for cloud-init, cloudbase-init and glean.
 *
 * @param directory root of the file system
 * @param instanceId tells them that this is a new machine
 */
export async function writeConfigDrive(
  directory: string,
  instanceId: string,
  { buildId, publicKey, userData }: Pick<LaunchRequest, 'buildId' | 'publicKey' | 'userData'>,
): Promise<void> {
  const latest = join(directory, 'openstack', 'latest');
  const metadata = { uuid: instanceId, name: buildId, public_keys: { [KEY_NAME]: publicKey.trim() } };
  await mkdir(latest, { recursive: true });
  await writeFile(join(latest, 'meta_data.json'), JSON.stringify(metadata));
  if (userData !== undefined) await writeFile(join(latest, 'user_data'), userData);
}

const KEY_NAME = 'nodepool-builder';
