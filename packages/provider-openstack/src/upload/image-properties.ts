import { isDeepStrictEqual } from 'node:util';
import {
  type Checksums,
  type ClaimRequest,
  type ImageFormat,
  splitTags,
  type UploadRequest,
} from '@nodepool-builder/image-builder';
import { cloudImageName, imageTags } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { type GlanceImage, PROTECTED_BY_US } from '../glance-image.ts';
import type { ImageProperties } from '../image-api.ts';

/** Property in which openstacksdk stores the md5 of the file. */
export const MD5 = 'owner_specified.openstack.md5';

/** Properties with digests. */
export const CHECKSUM_PROPERTIES: ReadonlyMap<string, 'md5' | 'sha256' | 'object'> = new Map(
  ['openstack', 'shade'].flatMap((owner) =>
    (['md5', 'sha256', 'object'] as const).map((key) => [`owner_specified.${owner}.${key}`, key]),
  ),
);

/** Glance's `disk_format` where it differs from nodepool's: Glance has one VHD format. */
const DISK_FORMATS: Readonly<Partial<Record<ImageFormat, string>>> = { vpc: 'vhd', 'vhd-fixed': 'vhd' };

/** Glance's `container_format` by disk format; default `bare`. */
const CONTAINER_FORMATS: Readonly<Record<string, string>> = { vhd: 'ovf' };

const VISIBILITIES: readonly string[] = ['community', 'private', 'public', 'shared'];

/** Type of a property: its parser, and a description of valid values. */
interface MetadataType {
  readonly read: (value: string) => ImageProperties[string] | undefined;
  readonly expected: string;
}

/** Base properties that Glance does not store as arbitrary text. */
const METADATA_TYPES: Readonly<Record<string, MetadataType>> = {
  min_disk: { read: wholeNumber, expected: 'a whole number of GB' },
  min_ram: { read: wholeNumber, expected: 'a whole number of MB' },
  os_hidden: { read: truth, expected: 'true or false' },
  protected: { read: truth, expected: 'true or false' },
  tags: { read: splitTags, expected: 'tags' },
  visibility: {
    read: (value) => (VISIBILITIES.includes(value) ? value : undefined),
    expected: VISIBILITIES.join(', '),
  },
};

/** Properties that Glance sets or reserves, or that only other requests may set. */
const CLOUD_PROPERTIES: readonly string[] = (
  'checksum created_at deleted deleted_at direct_url file id location locations os_hash_algo os_hash_value schema self ' +
  'size status stores updated_at virtual_size'
).split(' ');

/** Properties that `meta` cannot set, with the key that sets them. */
const UPLOAD_PROPERTIES: Readonly<Record<string, string>> = {
  name: 'template-hostname',
  disk_format: 'image-type',
};

/** Returns Glance's name of a format. */
export function diskFormat(format: ImageFormat): string {
  return DISK_FORMATS[format] ?? format;
}

export interface PropertySources {
  readonly provider: string;
  readonly request: UploadRequest;
  /** `disable_vendor_agent` of the cloud. */
  readonly vendor: Readonly<Record<string, string>>;
}

/**
 * Returns the final properties of an image, without the digests. Metadata may override the defaults (`visibility`,
 * `container_format`), but not the identity of the image.
 *
 * @throws CloudError `invalid-settings` for metadata of a wrong type
 */
export function imageProperties({ provider, request, vendor }: PropertySources): ImageProperties {
  const format = diskFormat(request.file.format);
  return {
    container_format: CONTAINER_FORMATS[format] ?? 'bare',
    ...claimProperties({ provider, request, vendor }),
    disk_format: format,
  };
}

/** Returns the part of {@link imageProperties} that does not depend on a file. */
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
    ...imageTags(provider, request),
  };
}

/** A `meta` property that Glance would reject, or that has no effect. */
export interface MetadataProblem {
  readonly name: string;
  /** Reason, which follows the name: `cannot be "big"`. */
  readonly reason: string;
  readonly remedy: string;
  readonly severity: 'job-error' | 'warning';
}

/** Lists problems in an image's metadata. */
export function* metadataProblems(metadata: Readonly<Record<string, string>>): Iterable<MetadataProblem> {
  for (const [name, value] of Object.entries(metadata)) {
    const [key, type] = [UPLOAD_PROPERTIES[name], METADATA_TYPES[name]];
    if (key !== undefined) {
      const remedy = `set ${key} of the provider instead`;
      yield { name, reason: 'has no effect', remedy, severity: 'warning' };
    } else if (CLOUD_PROPERTIES.includes(name) || name.startsWith('os_glance_')) {
      yield { name, reason: 'can only be set by Glance', remedy: 'remove it', severity: 'job-error' };
    } else if (type !== undefined && type.read(value) === undefined) {
      const reason = `cannot be ${JSON.stringify(value)}`;
      yield { name, reason, remedy: `write ${type.expected}`, severity: 'job-error' };
    }
  }
}

/** Returns digests as the properties of openstacksdk and shade. */
export function checksumProperties(request: UploadRequest, { md5, sha256 }: Checksums): ImageProperties {
  const values = { md5, sha256, object: `images/${cloudImageName(request)}` };
  return Object.fromEntries(Array.from(CHECKSUM_PROPERTIES, ([name, key]) => [name, values[key]]));
}

/** Reads digests stored by {@link checksumProperties} or by another client. Undefined if one is missing. */
export function checksumsIn(properties: Readonly<Record<string, unknown>>): Checksums | undefined {
  const [md5, sha256] = (['md5', 'sha256'] as const).map((digest) =>
    Array.from(CHECKSUM_PROPERTIES, ([name, key]) => (key === digest ? properties[name] : undefined)).find(
      (value) => typeof value === 'string' && value !== '',
    ),
  );
  return typeof md5 === 'string' && typeof sha256 === 'string' ? { md5, sha256 } : undefined;
}

/** Removes `protected`, which is set last, so that an image can be removed after a failure. */
export function unprotected({ protected: _, ...properties }: ImageProperties): ImageProperties {
  return properties;
}

/** Removes the formats, which cannot change once the image has data. */
export function withoutFormats(properties: ImageProperties): ImageProperties {
  const { disk_format: _disk, container_format: _container, ...others } = properties;
  return others;
}

/** Returns the wanted properties that an image does not have. */
export function missingProperties(image: GlanceImage, wanted: ImageProperties): ImageProperties {
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => !isSame(value, image[name])));
}

/** Compares tags as sets. */
function isSame(wanted: ImageProperties[string], there: unknown): boolean {
  if (!Array.isArray(wanted)) return wanted === there;
  return Array.isArray(there) && isDeepStrictEqual(new Set(wanted), new Set(there));
}

function readMetadata(metadata: Readonly<Record<string, string>>, imageName: string): ImageProperties {
  for (const { name, reason, remedy, severity } of metadataProblems(metadata)) {
    if (severity === 'warning') continue;
    throw new CloudError('invalid-settings', `meta of image ${imageName}: ${name} ${reason}; ${remedy}`);
  }
  const properties = Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, METADATA_TYPES[name]?.read(value) ?? value]),
  );
  return { ...properties, ...(properties.protected === true && { [PROTECTED_BY_US]: 'true' }) };
}

function wholeNumber(value: string): number | undefined {
  return /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

function truth(value: string): boolean | undefined {
  return { true: true, false: false }[value.toLowerCase()];
}
