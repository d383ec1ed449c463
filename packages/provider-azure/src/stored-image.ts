import { createHash } from 'node:crypto';
import type { ImageFilter, UploadRequest } from '@nodepool-builder/image-builder';
import { readImageTags } from '@nodepool-builder/image-builder/internal';
import {
  type CloudImage,
  type CloudUpload,
  cloudError,
  cloudImage,
} from '@nodepool-builder/image-builder/plugin';
import type { AzureEntry } from './azure-settings.ts';

/** Tag with the time of an upload, because managed images have no creation time. */
const UPLOADED_AT = 'nodepool_upload_time';

/** Tag with the requested image name, because a version has no name. */
const NAME = 'nodepool_external_name';

/** A managed image, or a version of an image definition. */
export interface StoredImage {
  /** Resource Manager id. */
  readonly id: string;
  /** Name of a managed image. Undefined for a version, which has a number instead. */
  readonly name: string | undefined;
  readonly location: string;
  readonly resourceGroup: string;
  /** `Succeeded`, `Creating`, `Failed` and so on. */
  readonly state: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Architecture in Azure spelling. */
  readonly architecture?: string | undefined;
  /** Further properties for filters. */
  readonly properties?: Readonly<Record<string, string>>;
  /** Creation time, if Azure knows it. */
  readonly createdAt?: Date | undefined;
  /** True if Azure no longer selects the image as the latest one, because it is excluded or past its end of life. */
  readonly isRetired?: boolean;
}

/** An upload with all properties of its image. */
export interface ImagePlan {
  readonly request: UploadRequest;
  /** Requested image name. */
  readonly name: string;
  /** Digest of provider and upload id, which is part of the names of its resources. */
  readonly key: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly osType: 'Linux' | 'Windows';
  readonly architecture: 'x64' | 'Arm64' | undefined;
}

/** Storage for images. */
export interface ImageStore {
  /** Id that the image of an upload will have; undefined if it does not depend on the upload alone. */
  idOf(plan: ImagePlan): string | undefined;
  /**
   * Finds the image of an upload, in any state.
   *
   * @param disk disk of an earlier attempt, if it still exists
   */
  find(plan: ImagePlan, signal: AbortSignal, disk?: SourceDisk): Promise<StoredImage | undefined>;
  /** Creates prerequisites of an upload's image before its bytes are sent. Idempotent. */
  prepare(plan: ImagePlan, signal: AbortSignal): Promise<void>;
  /**
   * Creates the image of an upload and waits for it.
   *
   * @param disk source of the image
   * @returns image id
   */
  create(plan: ImagePlan, disk: SourceDisk, signal: AbortSignal): Promise<string>;
  /** Returns an image. Undefined if it does not exist, or if the id does not belong to an image. */
  get(id: string, signal: AbortSignal): Promise<StoredImage | undefined>;
  /** Lists all images of a resource group. Default: the provider's resource group. */
  list(signal: AbortSignal, resourceGroup?: string): Promise<readonly StoredImage[]>;
  /** Deletes an image and waits until it is gone. A missing image is not an error. */
  delete(id: string, signal: AbortSignal): Promise<void>;
}

export interface SourceDisk {
  readonly id: string;
  readonly createdAt: Date;
}

/** Returns a digest of a provider's upload. Names that contain it never belong to another upload. */
export function uploadKey(provider: string, uploadId: string): string {
  return createHash('sha256').update(`${provider}\0${uploadId}`).digest('hex').slice(0, 24);
}

/** Max length of a managed image name. */
const MAX_NAME_LENGTH = 80;

/**
 * Returns the image name in Azure: the requested name, with invalid characters replaced, and part of the upload's key.
 */
export function imageNameOf({ name, key }: ImagePlan): string {
  const end = `-${key.slice(0, 8)}`;
  const permitted = name.replaceAll(/[^A-Za-z0-9_.-]/g, '-');
  return `${permitted.replace(/^[._-]+/, '').slice(0, MAX_NAME_LENGTH - end.length) || 'image'}${end}`;
}

const ARCHITECTURES: Readonly<Record<string, 'x64' | 'Arm64'>> = {
  x64: 'x64',
  x86_64: 'x64',
  amd64: 'x64',
  arm64: 'Arm64',
  aarch64: 'Arm64',
};

/** @throws CloudError `bad-request` for metadata that cannot be stored as tags */
export function planImage(
  { name: provider, tags: common }: AzureEntry,
  { request, name, tags: own, subject }: CloudUpload,
): ImagePlan {
  const { metadata = {} } = request;
  const tags = { ...common, ...own, [UPLOADED_AT]: new Date().toISOString(), [NAME]: name };
  for (const [tag, value] of Object.entries(tags)) {
    const reason = tagError(tag, value);
    if (reason === undefined) continue;
    throw cloudError(
      'bad-request',
      subject,
      `"${tag}" cannot be a tag in Azure: ${reason}; correct meta or tags`,
    );
  }
  return {
    request,
    name,
    key: uploadKey(provider, request.uploadId),
    tags,
    osType: metadata.os_type?.toLowerCase() === 'windows' ? 'Windows' : 'Linux',
    architecture: ARCHITECTURES[metadata.architecture?.toLowerCase() ?? ''],
  };
}

function tagError(name: string, value: string): string | undefined {
  if (/[<>%&\\?/]/.test(name)) return String.raw`its name contains one of <>%&\?/`;
  if (name.length > 512) return 'its name has more than 512 characters';
  return value.length > 256 ? 'its value has more than 256 characters' : undefined;
}

/** Returns whether an image has the tags of this provider's upload. */
export function isOf(image: Pick<StoredImage, 'tags'>, provider: string, uploadId?: string): boolean {
  const tagged = readImageTags(image.tags);
  return tagged?.provider === provider && (uploadId === undefined || tagged.uploadId === uploadId);
}

/**
 * Describes an image. Azure treats `West Europe` and `westeurope` as the same region, so the result uses the spelling
 * of the filter.
 */
export function describeImage(image: StoredImage, { properties }: ImageFilter = {}): CloudImage<StoredImage> {
  const { id, name, state, tags, isRetired = false } = image;
  const spelled = (key: string, value: string): string =>
    properties?.get(key)?.find((wanted) => plain(wanted) === plain(value)) ?? value;
  const architecture = tags.architecture ?? image.architecture;
  const uploadedAt = Date.parse(tags[UPLOADED_AT] ?? '');
  return cloudImage({
    native: image,
    externalId: id,
    name: name ?? tags[NAME] ?? id,
    status: isRetired ? 'retired' : state,
    isComplete: state === 'Succeeded',
    isUsable: state === 'Succeeded' && !isRetired,
    version: `${state} ${tags[UPLOADED_AT]}`,
    ...(architecture !== undefined && { architecture }),
    properties: {
      location: spelled('location', image.location),
      'resource-group': spelled('resource-group', image.resourceGroup),
      ...image.properties,
      ...tags,
    },
    createdAt: Number.isFinite(uploadedAt) ? new Date(uploadedAt) : (image.createdAt ?? new Date(0)),
  });
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(' ', '');
}

/** Parses the id of a Microsoft.Compute resource; undefined for any other text. */
export function parseId(id: string): { resourceGroup: string; path: readonly string[] } | undefined {
  const match =
    /^\/subscriptions\/[^/]+\/resourceGroups\/(?<group>[^/]+)\/providers\/Microsoft\.Compute\/(?<path>.+)$/i;
  const { group = '', path = '' } = match.exec(id)?.groups ?? {};
  return path === '' ? undefined : { resourceGroup: group, path: path.split('/') };
}
