import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LaunchRequest } from '@nodepool-builder/image-builder';

/** The label of the file system, by which it is known. */
export const CONFIG_DRIVE_LABEL = 'config-2';

/**
 * Writes what OpenStack puts on a config drive, as cloud-init, cloudbase-init and glean read it.
 *
 * @param directory becomes the root of the file system.
 * @param instanceId by it they know that this is not the machine that they have set up before.
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
