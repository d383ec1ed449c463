import type { ImageFormat } from '@nodepool-builder/image-builder';
import type { ZuulArtifact, ZuulBuild } from '../api/zuul-build.ts';

/** One row of `zuul-images[].artifacts`: what type of artifact holds which format. */
export interface ArtifactRule {
  readonly format: ImageFormat;
  /** The `metadata.type` that the job returns: `image-qcow`, or `zuul_image` for all formats. */
  readonly type: string;
}

/** Which artifacts of a build are the image. */
export interface ImageRules {
  /** Decides where a build returns several images: by `metadata.image_name`. */
  readonly imageName: string;
  readonly artifacts: readonly ArtifactRule[];
  /** Whether each artifact has to come with its sha256. Default: no. */
  readonly requireSha256?: boolean;
}

/** An artifact that holds the image in one format. */
export interface ImageArtifact {
  readonly format: ImageFormat;
  /** Absolute: http, https or s3. Its query may be a signature: never log it. */
  readonly url: string;
  /** Of the image as it is without compression; lower case. */
  readonly sha256?: string;
  /** Of the image as it is without compression; lower case. */
  readonly md5?: string;
  /** Of the object as it is stored, compressed or not; lower case. */
  readonly crc32?: string;
}

/** What the field writes, in a job's `metadata.format` and in `zuul-images`, for a format that has another name here. */
export const FORMAT_ALIASES: Readonly<Record<string, ImageFormat>> = { qcow: 'qcow2' };

/** Resolves the alias of a format. */
export function artifactFormat(format: string): ImageFormat {
  return FORMAT_ALIASES[format] ?? (format as ImageFormat);
}

/** Under which names of `metadata` each digest stands, and how many hexadecimal digits it has. */
const DIGESTS = {
  sha256: { names: ['sha256'], length: 64 },
  md5: { names: ['md5sum', 'md5'], length: 32 },
  crc32: { names: ['crc32'], length: 8 },
} as const;

/**
 * The artifacts of a build that hold the image, at most one per format.
 *
 * @throws Error with the reason, if it is not clear which artifact is the image, or a checksum is missing or invalid
 */
export function imageArtifacts(
  build: ZuulBuild,
  { imageName, artifacts, requireSha256 = false }: ImageRules,
): readonly ImageArtifact[] {
  return artifacts.flatMap((rule) => {
    const matching = build.artifacts.filter((artifact) => follows(rule, artifact));
    const named = matching.filter(({ metadata }) => metadata.image_name === imageName);
    const [found, ...others] = named.length > 0 ? named : matching;
    if (found === undefined) return [];
    if (others.some(({ url }) => url !== found.url)) {
      throw new Error(
        `it has several artifacts of type "${rule.type}" for ${rule.format}, and image_name does not single out one`,
      );
    }
    const artifact = { format: rule.format, url: found.url, ...digests(found) };
    if (requireSha256 && artifact.sha256 === undefined) {
      throw new Error(
        `its artifact "${found.name}" has no sha256 in its metadata, and require-sha256 is set`,
      );
    }
    return [artifact];
  });
}

/** A type that stands for all formats is followed by the format; one that stands for a single format need not be. */
function follows({ format, type }: ArtifactRule, { metadata }: ZuulArtifact): boolean {
  const said = metadata.format;
  if (metadata.type !== type) return false;
  return typeof said !== 'string' || (FORMAT_ALIASES[said] ?? said) === format;
}

function digests({ name, metadata }: ZuulArtifact): Pick<ImageArtifact, keyof typeof DIGESTS> {
  const found = Object.entries(DIGESTS).flatMap(([digest, { names, length }]) => {
    const value = names
      .map((key) => metadata[key])
      .find((written) => written !== undefined && written !== null);
    if (value === undefined || value === '') return [];
    if (typeof value !== 'string' || value.length !== length || !/^[\da-f]+$/i.test(value)) {
      throw new Error(`the ${digest} of its artifact "${name}" is not ${length} hexadecimal digits`);
    }
    return [[digest, value.toLowerCase()]];
  });
  return Object.fromEntries(found);
}
