import { isDeepStrictEqual } from 'node:util';
import {
  type Checksums,
  type ClaimRequest,
  type ImageFormat,
  splitTags,
  type UploadRequest,
} from '@nodepool-builder/image-builder';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageProperties } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';

/** The property with the upload's id: what a second try, or nobody, is to find the image by. */
export const UPLOAD_ID = 'nodepool_upload_id';
/** The property with the image's id in `images-dir`. */
export const BUILD_ID = 'nodepool_build_id';
/** The property with `providers[].name`. */
export const PROVIDER_NAME = 'nodepool_provider_name';
/** The property with `providers[].images[].name`. */
export const IMAGE_NAME = 'nodepool_image_name';
/** The property with the time at which the image's build ended, in ISO 8601. */
export const BUILD_TIME = 'nodepool_build_time';

/** The property with the md5 of the file, as openstacksdk calls it. */
export const MD5 = 'owner_specified.openstack.md5';

/** The properties with the digests, and which they are. */
export const CHECKSUM_PROPERTIES: ReadonlyMap<string, 'md5' | 'sha256' | 'object'> = new Map(
  ['openstack', 'shade'].flatMap((owner) =>
    (['md5', 'sha256', 'object'] as const).map((key) => [`owner_specified.${owner}.${key}`, key]),
  ),
);

/** Glance's `disk_format` where it is another word than nodepool's: it knows one VHD. */
const DISK_FORMATS: Readonly<Partial<Record<ImageFormat, string>>> = { vpc: 'vhd', 'vhd-fixed': 'vhd' };

/** Glance's `container_format` where it is not `bare`, by disk format. */
const CONTAINER_FORMATS: Readonly<Record<string, string>> = { vhd: 'ovf' };

/** The metadata that is not text to Glance, and how it is read. */
const METADATA_TYPES: Readonly<Record<string, (value: string) => ImageProperties[string] | undefined>> = {
  min_disk: wholeNumber,
  min_ram: wholeNumber,
  protected: truth,
  tags: splitTags,
};

/** Glance's word for a format. */
export function diskFormat(format: ImageFormat): string {
  return DISK_FORMATS[format] ?? format;
}

/** What {@link imageProperties} depends on. */
export interface PropertySources {
  readonly provider: string;
  readonly request: UploadRequest;
  /** `disable_vendor_agent` of the cloud. */
  readonly vendor: Readonly<Record<string, string>>;
}

/** The name in the cloud: what was asked for, else made of the image's name and id. */
export function cloudImageName({ externalName, imageName, imageId }: ClaimRequest): string {
  return externalName ?? `${imageName}-${imageId}`;
}

/**
 * All properties that the image is to have in the end, but for the digests. Metadata may say more than the
 * defaults (`visibility`, `container_format`), but not what the image is or whose.
 *
 * @throws OpenStackError `invalid-settings` for metadata that is not of its type.
 */
export function imageProperties({ provider, request, vendor }: PropertySources): ImageProperties {
  const format = diskFormat(request.file.format);
  return {
    container_format: CONTAINER_FORMATS[format] ?? 'bare',
    ...claimProperties({ provider, request, vendor }),
    disk_format: format,
  };
}

/** Those of them that do not depend on a file. Throws as {@link imageProperties} does. */
export function claimProperties({
  provider,
  request,
  vendor,
}: Omit<PropertySources, 'request'> & { readonly request: ClaimRequest }): ImageProperties {
  return {
    visibility: 'private',
    ...vendor,
    ...readMetadata(request.metadata ?? {}, request.imageName),
    name: cloudImageName(request),
    [PROVIDER_NAME]: provider,
    [BUILD_ID]: request.imageId,
    [UPLOAD_ID]: request.uploadId,
    [IMAGE_NAME]: request.imageName,
    ...(request.builtAt !== undefined && { [BUILD_TIME]: request.builtAt.toISOString() }),
  };
}

/** The digests as openstacksdk keeps them, and as shade did. */
export function checksumProperties(request: UploadRequest, { md5, sha256 }: Checksums): ImageProperties {
  const values = { md5, sha256, object: `images/${cloudImageName(request)}` };
  return Object.fromEntries(Array.from(CHECKSUM_PROPERTIES, ([name, key]) => [name, values[key]]));
}

/** Digests stored by {@link checksumProperties} or by another client; undefined if one is missing. */
export function checksumsIn(properties: Readonly<Record<string, unknown>>): Checksums | undefined {
  const [md5, sha256] = (['md5', 'sha256'] as const).map((digest) =>
    Array.from(CHECKSUM_PROPERTIES, ([name, key]) => (key === digest ? properties[name] : undefined)).find(
      (value) => typeof value === 'string' && value !== '',
    ),
  );
  return typeof md5 === 'string' && typeof sha256 === 'string' ? { md5, sha256 } : undefined;
}

/** A protected image could not be removed if its upload failed, so that it becomes so only in the end. */
export function unprotected({ protected: _, ...properties }: ImageProperties): ImageProperties {
  return properties;
}

/** The formats of an image with data are what the cloud made of it: they cannot be set any more. */
export function withoutFormats(properties: ImageProperties): ImageProperties {
  const { disk_format: _disk, container_format: _container, ...others } = properties;
  return others;
}

/** Those of the wanted properties that an image does not have. */
export function missingProperties(image: GlanceImage, wanted: ImageProperties): ImageProperties {
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => !isSame(value, image.properties[name])),
  );
}

/** Tags are a set. */
function isSame(wanted: ImageProperties[string], there: unknown): boolean {
  if (!Array.isArray(wanted)) return wanted === there;
  return Array.isArray(there) && isDeepStrictEqual(new Set(wanted), new Set(there));
}

function readMetadata(metadata: Readonly<Record<string, string>>, imageName: string): ImageProperties {
  return Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => {
      const read = METADATA_TYPES[name];
      const property = read === undefined ? value : read(value);
      if (property !== undefined) return [name, property];
      throw new OpenStackError(
        'invalid-settings',
        `meta of image ${imageName}: ${name} cannot be ${JSON.stringify(value)}; correct it under providers[].images`,
      );
    }),
  );
}

function wholeNumber(value: string): number | undefined {
  return /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

function truth(value: string): boolean | undefined {
  return { true: true, false: false }[value.toLowerCase()];
}
