import { FORMAT_NAMES, type ImageFormat } from '@nodepool-builder/image-builder';
import { isConvertible } from '@nodepool-builder/image-builder/internal';
import type { ZuulArtifact, ZuulBuild } from '../api/zuul-build.ts';
import type { ExpectedDigests } from '../download/transfer.ts';
import { artifactFormat, type ZuulSettings } from '../zuul-settings.ts';

/** Settings that select the artifacts of a build that are the image. */
export interface ImageRules extends Pick<ZuulSettings, 'artifacts' | 'require-sha256' | 'image-name'> {
  /** Name of the disk image, the default of `image-name`. */
  readonly name: string;
}

/** An artifact that is the image in one format. */
export interface ImageArtifact extends ExpectedDigests {
  readonly format: ImageFormat;
  /** Absolute http, https or s3 URL. Its query may be a signature and must never be logged. */
  readonly url: string;
}

/** Maximum number of names in a message, and maximum length of each, because a job may return any. */
const MAX_SHOWN = 10;
const MAX_LENGTH = 100;

/** Digests with their names in `metadata`, and their number of hexadecimal digits. */
const DIGESTS = {
  sha256: { names: ['sha256'], length: 64 },
  md5: { names: ['md5sum', 'md5'], length: 32 },
  crc32: { names: ['crc32'], length: 8 },
} as const;

/**
 * Returns the formats that can be made from files in some formats: first these, then those to which qemu-img converts
 * them.
 */
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
  const matching = rules.artifacts.map(({ format: name, type }) => {
    const format = artifactFormat(name);
    const artifacts = build.artifacts.filter(
      ({ metadata }) => metadata.type === type && hasFormat(metadata, format),
    );
    return { format, type, artifacts };
  });
  const imageName = chosenName(
    matching.flatMap(({ artifacts }) => artifacts),
    rules,
  );
  const found = matching.flatMap((candidates) => chooseArtifact(candidates, imageName) ?? []);
  const withoutDigest = found.find(({ sha256 }) => rules['require-sha256'] && sha256 === undefined);
  if (withoutDigest !== undefined) {
    throw new Error(
      `its ${withoutDigest.format} artifact has no sha256 in its metadata, and require-sha256 is set`,
    );
  }
  if (found.length > 0) return found;
  throw new Error(['none of its artifacts is the image', ...build.unusableArtifacts].join('; '));
}

/**
 * Returns the `image_name` of the image. A single image under another name than the disk image's is accepted, unless
 * the name is configured.
 */
function chosenName(artifacts: readonly ZuulArtifact[], rules: ImageRules): string | undefined {
  const { name, 'image-name': wanted = name } = rules;
  const returned = new Set(artifacts.flatMap(({ metadata }) => nameIn(metadata) ?? []));
  if (returned.has(wanted)) return wanted;
  const names = quoted(returned);
  if (rules['image-name'] !== undefined && artifacts.length > 0) {
    const there = returned.size === 0 ? 'they have none' : `they have ${names}`;
    throw new Error(
      `none of its artifacts has the image_name "${wanted}" that image-name requires: ${there}`,
    );
  }
  if (returned.size < 2) return [...returned][0];
  throw new Error(`it has several artifacts with the image_name ${names}; set image-name to one of them`);
}

function nameIn({ image_name: name }: ZuulArtifact['metadata']): string | undefined {
  return typeof name === 'string' ? name : undefined;
}

function quoted(names: ReadonlySet<string>): string {
  const shown = [...names].slice(0, MAX_SHOWN).map((name) => JSON.stringify(name.slice(0, MAX_LENGTH)));
  return shown.join(', ') + (names.size > MAX_SHOWN ? ' and others' : '');
}

/** Returns the artifact of an image in one format. Artifacts without a name are used if none has one. */
function chooseArtifact(
  {
    format,
    type,
    artifacts,
  }: { readonly format: ImageFormat; readonly type: string; readonly artifacts: readonly ZuulArtifact[] },
  imageName: string | undefined,
): ImageArtifact | undefined {
  const named = artifacts.filter(({ metadata }) => nameIn(metadata) === imageName);
  const unnamed = artifacts.filter(({ metadata }) => nameIn(metadata) === undefined);
  const [first, ...others] = named.length > 0 ? named : unnamed;
  if (first === undefined) return undefined;
  if (others.some(({ url }) => url !== first.url)) {
    const whose = imageName === undefined ? 'without image_name' : `with the image_name "${imageName}"`;
    const remedy = 'let the job return an image_name for each, and set image-name to one of them';
    throw new Error(`it has several artifacts of type "${type}" for ${format} ${whose}; ${remedy}`);
  }
  return { format, url: first.url, ...digestsOf(first) };
}

/**
 * Returns whether an artifact has a format. A type for all formats needs `format` in the metadata; a type for one
 * format does not.
 */
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
