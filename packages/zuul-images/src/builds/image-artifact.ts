import { FORMAT_NAMES, type ImageFormat } from '@nodepool-builder/image-builder';
import { isConvertible } from '@nodepool-builder/image-builder/module-kit';
import type { ZuulArtifact, ZuulBuild } from '../api/zuul-build.ts';
import type { ExpectedDigests } from '../download/transfer.ts';
import { artifactFormat, type ZuulSettings } from '../zuul-settings.ts';

/** Settings that decide which artifacts of a build are the image. */
export interface ImageRules extends Pick<ZuulSettings, 'artifacts' | 'require-sha256'> {
  /** Decides if a build returns several images: by `metadata.image_name`. */
  readonly 'image-name': string;
}

/** An artifact that is the image in one format. */
export interface ImageArtifact extends ExpectedDigests {
  readonly format: ImageFormat;
  /** Absolute: http, https or s3. Its query may be a signature: never log it. */
  readonly url: string;
}

/** Digests with their names in `metadata`, and their number of hexadecimal digits. */
const DIGESTS = {
  sha256: { names: ['sha256'], length: 64 },
  md5: { names: ['md5sum', 'md5'], length: 32 },
  crc32: { names: ['crc32'], length: 8 },
} as const;

/** Formats that can be made from files in some formats: first these, then those that qemu-img converts them to. */
export function makeableFormats(formats: readonly ImageFormat[]): readonly ImageFormat[] {
  const converted = formats.some(isConvertible) ? FORMAT_NAMES.filter(isConvertible) : [];
  return [...new Set([...formats, ...converted])];
}

/**
 * Returns the artifacts of a build that are the image, at least one, and at most one for each format.
 *
 * @throws Error with the reason, if none or several of its artifacts match, or if a digest is missing or invalid
 */
export function imageArtifacts(build: ZuulBuild, rules: ImageRules): readonly ImageArtifact[] {
  const found = rules.artifacts.flatMap(({ format, type }) => {
    const artifact = findArtifact(build, rules['image-name'], artifactFormat(format), type);
    return artifact === undefined ? [] : [artifact];
  });
  const withoutDigest = found.find(({ sha256 }) => rules['require-sha256'] && sha256 === undefined);
  if (withoutDigest !== undefined) {
    throw new Error(
      `its ${withoutDigest.format} artifact has no sha256 in its metadata, and require-sha256 is set`,
    );
  }
  if (found.length > 0) return found;
  throw new Error(['none of its artifacts is the image', ...build.unusableArtifacts].join('; '));
}

function findArtifact(
  { artifacts }: ZuulBuild,
  imageName: string,
  format: ImageFormat,
  type: string,
): ImageArtifact | undefined {
  const matching = artifacts.filter(({ metadata }) => metadata.type === type && hasFormat(metadata, format));
  const named = matching.filter(({ metadata }) => metadata.image_name === imageName);
  const [first, ...others] = named.length > 0 ? named : matching;
  if (first === undefined) return undefined;
  if (others.some(({ url }) => url !== first.url)) {
    throw new Error(
      `it has several artifacts of type "${type}" for ${format}, and image_name does not single out one`,
    );
  }
  return { format, url: first.url, ...digestsOf(first) };
}

/** A type for all formats needs `format` in the metadata; a type for one format does not. */
function hasFormat({ format }: ZuulArtifact['metadata'], expected: ImageFormat): boolean {
  return typeof format !== 'string' || artifactFormat(format) === expected;
}

function digestsOf({ name, metadata }: ZuulArtifact): ExpectedDigests {
  const found = Object.entries(DIGESTS).flatMap(([digest, { names, length }]) => {
    const value = names.map((key) => metadata[key] ?? '').find((text) => text !== '');
    if (value === undefined) return [];
    if (typeof value !== 'string' || value.length !== length || !/^[\da-f]+$/i.test(value)) {
      throw new Error(`the ${digest} of its artifact "${name}" is not ${length} hexadecimal digits`);
    }
    return [[digest, value.toLowerCase()]];
  });
  return Object.fromEntries(found);
}
