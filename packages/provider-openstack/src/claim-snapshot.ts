import type { GlanceImage } from './glance-image.ts';
import type { ImageApi, ImageProperties } from './image-api.ts';
import { CAPTURED_OF } from './instance/capture-server.ts';
import { OpenStackError } from './openstack-error.ts';
import { missingProperties, UPLOAD_ID, withoutFormats } from './upload/image-properties.ts';

/**
 * Gives an image that a server was captured as the properties of an upload: from then on it is the upload's.
 *
 * @returns whether it did; not if the image is gone, or another upload's
 */
export async function claimSnapshot(
  images: ImageApi,
  id: string,
  properties: ImageProperties,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const image = await images.get(id, signal);
    if (image.status !== 'active') return false;
    if (image.properties[UPLOAD_ID] !== properties[UPLOAD_ID] && !isUnclaimed(image)) return false;
    const missing = missingProperties(image, withoutFormats(properties));
    if (Object.keys(missing).length > 0) await images.update(id, missing, signal);
    return true;
  } catch (error) {
    if (error instanceof OpenStackError && error.code === 'not-found') return false;
    throw error;
  }
}

/** As long as no upload has claimed it, a snapshot has an upload's id that ends with the id of its server. */
function isUnclaimed({ properties }: GlanceImage): boolean {
  const { [UPLOAD_ID]: uploadId, [CAPTURED_OF]: serverId } = properties;
  return typeof uploadId === 'string' && typeof serverId === 'string' && uploadId.endsWith(serverId);
}
