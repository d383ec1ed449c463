import { type CloudError, cloudError } from '../cloud-error.ts';
import { ImageError } from '../errors.ts';
import { imageIdError } from '../image-id.ts';

/** Creates the error for the deletion of an image that a provider did not upload. */
export function notOurs(provider: string, externalId: string): CloudError {
  const reason = `${externalId} was not uploaded by this provider, and cannot be deleted`;
  return cloudError('not-ours', `provider ${provider}`, reason);
}

/** Creates the error for an external id without an image. @param place subject of the message: `cloud west` */
export function noImage(place: string, externalId: string): ImageError {
  const id = JSON.stringify(externalId);
  return new ImageError('image-not-found', `${place} has no image ${id}; list shows the existing ids`);
}

/** Rejects external ids that would lead out of their directory. @throws ImageError `image-not-found` */
export function checkExternalId(externalId: string): void {
  const error = imageIdError(externalId);
  if (error === undefined) return;
  const id = JSON.stringify(externalId);
  throw new ImageError('image-not-found', `external-id ${id} ${error}; list shows the existing ids`);
}

/**
 * Rejects an invalid name of an image in a provider.
 *
 * @param reason follows the name: `contains a "/"`. Default: why the name is not a valid file name; undefined if it is
 * @throws ImageError `provider-refused`
 */
export function checkImageName(provider: string, name: string, reason = imageIdError(name)): void {
  if (reason === undefined) return;
  throw new ImageError(
    'provider-refused',
    `provider ${provider} cannot store an image as ${JSON.stringify(name.slice(0, 130))}: it ${reason}; rename the image under providers[].images`,
  );
}
