import { createHash } from 'node:crypto';
import type { ImageFilter, UploadRequest } from '@nodepool-builder/image-builder';
import {
  type CloudImage,
  type CloudUpload,
  cloudError,
  cloudImage,
  readImageTags,
} from '@nodepool-builder/image-builder/module-kit';
import type { AzureEntry } from './azure-settings.ts';

/** Tag with the time of an upload: managed images have no time of creation. */
const UPLOADED_AT = 'nodepool_upload_time';

/** Tag with the name that the upload asked for: a version has none of its own. */
const NAME = 'nodepool_external_name';

/** A managed image, or a version of an image definition. */
export interface StoredImage {
  /** Id of Resource Manager. */
  readonly id: string;
  /** Undefined for a version, which has a number. */
  readonly name: string | undefined;
  readonly location: string;
  readonly resourceGroup: string;
  /** `Succeeded`, `Creating`, `Failed` and so on. */
  readonly state: string;
  readonly tags: Readonly<Record<string, string>>;
  /** In Azure's spelling. */
  readonly architecture?: string | undefined;
  /** What else filters can ask for. */
  readonly properties?: Readonly<Record<string, string>>;
  /** Time that Azure knows, where it knows one. */
  readonly createdAt?: Date | undefined;
  /** Whether Azure no longer chooses it as the latest one: it is excluded, or past the end of its life. */
  readonly isRetired?: boolean;
}

/** An upload, with all that its image gets. */
export interface ImagePlan {
  readonly request: UploadRequest;
  /** Name that the upload asks for. */
  readonly name: string;
  /** Digest of provider and upload id, which the names of its resources contain. */
  readonly key: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly osType: 'Linux' | 'Windows';
  readonly architecture: 'x64' | 'Arm64' | undefined;
}

/** Place where images are stored. */
export interface ImageStore {
  /** Id that the image of an upload will have; undefined where it depends on more than the upload. */
  idOf(plan: ImagePlan): string | undefined;
  /**
   * Finds the image of an upload, in whatever state.
   *
   * @param disk of an earlier attempt, if one is left
   */
  find(plan: ImagePlan, signal: AbortSignal, disk?: SourceDisk): Promise<StoredImage | undefined>;
  /** Creates what the image of an upload needs, before its bytes travel. The call is idempotent. */
  prepare(plan: ImagePlan, signal: AbortSignal): Promise<void>;
  /**
   * Creates the image of an upload, and waits for it.
   *
   * @param disk its source
   * @returns its id
   */
  create(plan: ImagePlan, disk: SourceDisk, signal: AbortSignal): Promise<string>;
  /** Undefined if it does not exist, or if the id is not that of an image. */
  get(id: string, signal: AbortSignal): Promise<StoredImage | undefined>;
  /** Lists all images of a resource group. Default: that of the provider. */
  list(signal: AbortSignal, resourceGroup?: string): Promise<readonly StoredImage[]>;
  /** Deletes an image and waits for the end. A missing image is not an error. */
  delete(id: string, signal: AbortSignal): Promise<void>;
}

export interface SourceDisk {
  readonly id: string;
  readonly createdAt: Date;
}

/** Digest of an upload of a provider: names that contain it are never those of another upload. */
export function uploadKey(provider: string, uploadId: string): string {
  return createHash('sha256').update(`${provider}\0${uploadId}`).digest('hex').slice(0, 24);
}

/** Longest name of a managed image. */
const LONGEST_NAME = 80;

/** Name of an image in Azure: the requested one, with what Azure refuses replaced, and a part of the upload's key. */
export function imageNameOf({ name, key }: ImagePlan): string {
  const end = `-${key.slice(0, 8)}`;
  const permitted = name.replaceAll(/[^A-Za-z0-9_.-]/g, '-');
  return `${permitted.replace(/^[._-]+/, '').slice(0, LONGEST_NAME - end.length) || 'image'}${end}`;
}

const ARCHITECTURES: Readonly<Record<string, 'x64' | 'Arm64'>> = {
  x64: 'x64',
  x86_64: 'x64',
  amd64: 'x64',
  arm64: 'Arm64',
  aarch64: 'Arm64',
};

/** @throws CloudError `bad-request` for metadata that cannot be tags */
export function planImage(
  { name: provider, tags: common }: AzureEntry,
  { request, name, tags: own, subject }: CloudUpload,
): ImagePlan {
  const { metadata = {} } = request;
  const tags = { ...common, ...own, [UPLOADED_AT]: new Date().toISOString(), [NAME]: name };
  for (const [tag, value] of Object.entries(tags)) {
    const reason = tagFault(tag, value);
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

function tagFault(name: string, value: string): string | undefined {
  if (/[<>%&\\?/]/.test(name)) return String.raw`its name contains one of <>%&\?/`;
  if (name.length > 512) return 'its name has more than 512 characters';
  return value.length > 256 ? 'its value has more than 256 characters' : undefined;
}

/** Whether an image carries the tags of an upload of this provider. */
export function isOf(image: Pick<StoredImage, 'tags'>, provider: string, uploadId?: string): boolean {
  const tagged = readImageTags(image.tags);
  return tagged?.provider === provider && (uploadId === undefined || tagged.uploadId === uploadId);
}

/** Describes an image. Azure knows `West Europe` and `westeurope` as one: they are spelled as in the filter. */
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

/** Parts of the id of a resource of Microsoft.Compute; undefined for another text. */
export function parseId(id: string): { resourceGroup: string; path: readonly string[] } | undefined {
  const match =
    /^\/subscriptions\/[^/]+\/resourceGroups\/(?<group>[^/]+)\/providers\/Microsoft\.Compute\/(?<path>.+)$/i;
  const { group = '', path = '' } = match.exec(id)?.groups ?? {};
  return path === '' ? undefined : { resourceGroup: group, path: path.split('/') };
}
