import type { protos } from '@google-cloud/compute';
import { cloudError, IMAGE_TAGS, listAll, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { operationError } from './gce-error.ts';
import type { GceSession } from './gce-session.ts';
import { labelValue, taggedImage } from './image-labels.ts';

export type Image = protos.google.cloud.compute.v1.IImage;

/** Time limit of a deprecation or a deletion, in seconds. */
const CHANGE_TIME = 600;

/** Location of images, and the signal that ends its requests. */
export interface ImageSite {
  readonly session: GceSession;
  /** Max seconds between two polls of a pending resource. */
  readonly interval: number;
  readonly signal: AbortSignal;
}

/**
 * Returns whether an operation has ended. An operation that Compute Engine no longer knows has ended.
 *
 * @param task what the operation does: `image debian`
 * @throws CloudError with all reasons of a failure
 */
export async function isOperationDone(
  { session, signal }: ImageSite,
  operation: string,
  task: string,
): Promise<boolean> {
  const asked = session.call('GetOperation', signal, async ({ operations, project }) => {
    const [response] = await operations.get({ project, operation });
    return response;
  });
  const found = await asked.catch(unlessAbsent);
  const failure = found && operationError(session.subject(task), found);
  if (failure !== undefined) throw failure;
  return found === undefined || found.status === 'DONE';
}

/** Returns an image of a project; undefined if it does not exist. Default: the provider's project. */
export async function getImage(
  { session, signal }: ImageSite,
  name: string,
  project?: string,
): Promise<Image | undefined> {
  const asked = session.call('GetImage', signal, async (clients) => {
    const [image] = await clients.images.get({ project: project ?? clients.project, image: name });
    return image;
  });
  return await asked.catch(unlessAbsent);
}

/** Lists the provider's images by one of our labels. */
export async function imagesWith(
  site: ImageSite,
  tag: 'provider' | 'uploadId',
  value: string,
): Promise<Image[]> {
  const images = await listImages(site, { filter: `labels.${IMAGE_TAGS[tag]}="${labelValue(value)}"` });
  return images.filter(({ description }) => taggedImage(description)?.[tag] === value);
}

/** Lists images of a project, from all pages. */
export async function listImages(
  { session, signal }: ImageSite,
  { filter, project }: { filter?: string; project?: string },
): Promise<Image[]> {
  const subject = session.subject('ListImages');
  return await listAll({ subject }, async (pageToken) => {
    const [entries, , page] = await session.call('ListImages', signal, async ({ images, project: own }) => {
      const query = {
        ...(filter !== undefined && { filter }),
        ...(pageToken !== undefined && { pageToken }),
      };
      return await images.list({ project: project ?? own, ...query }, { autoPaginate: false });
    });
    // An empty list has no `items`.
    if (page?.kind === 'compute#imageList') return { entries, next: page.nextPageToken };
    throw cloudError('invalid-response', subject, 'the response is not an image list');
  });
}

/** Deletes an image of the provider's project and waits until it is gone. A missing image is not an error. */
export async function removeImage(site: ImageSite, found: Image): Promise<void> {
  const { session, signal } = site;
  const image = found.name ?? '';
  if (isLaunchedByFamily(found)) {
    const deprecation = await session
      .call('DeprecateImage', signal, async ({ images, project }) => {
        const deprecationStatusResource = { state: 'OBSOLETE' };
        return nameOf(await images.deprecate({ project, image, deprecationStatusResource }));
      })
      .catch(unlessAbsent);
    // Until the deprecation ends, launches select the image by its family, and Compute Engine may refuse the deletion.
    await waitForChange(site, `deprecation of image ${image}`, deprecation, async () => true);
  }
  const deletion = await session
    .call('DeleteImage', signal, async ({ images, project }) =>
      nameOf(await images.delete({ project, image })),
    )
    .catch(unlessAbsent);
  const isGone = async (): Promise<boolean> => (await getImage(site, image)) === undefined;
  await waitForChange(site, `deletion of image ${image}`, deletion, isGone);
}

/**
 * Returns whether launches can select an image by its family. Only images that are ready can be launched or deprecated.
 */
function isLaunchedByFamily({ family, status, deprecated }: Image): boolean {
  return Boolean(family) && status === 'READY' && (deprecated?.state || 'ACTIVE') === 'ACTIVE';
}

/** Waits until an operation has ended without an error and its effect is visible. */
async function waitForChange(
  site: ImageSite,
  task: string,
  operation: string | undefined,
  isVisible: () => Promise<boolean>,
): Promise<void> {
  const { session, interval, signal } = site;
  const isDone = async (): Promise<true | undefined> => {
    const hasEnded = operation === undefined || (await isOperationDone(site, operation, task));
    return hasEnded && (await isVisible()) ? true : undefined;
  };
  const onTimeout = (): Error =>
    cloudError('image-timeout', session.subject(task), `not finished after ${CHANGE_TIME} s`);
  await poll(isDone, { timeout: CHANGE_TIME, interval, signal, onTimeout });
}

/** Returns the name of the operation that a request has started. */
function nameOf([started]: readonly [{ readonly latestResponse: unknown }, ...unknown[]]):
  | string
  | undefined {
  return (started.latestResponse as { readonly name?: string }).name;
}
