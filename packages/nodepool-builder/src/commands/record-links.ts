import { formatRow, isImageFormat } from '@nodepool-builder/image-builder/internal';
import {
  type BuildFacts,
  type ChainReport,
  type FoundAttestation,
  type TrustedKey,
  type UploadFacts,
  uploadFactsOf,
  verifyBundle,
} from '@nodepool-builder/provenance';
import type { Evidence, ImageRecord, Link } from './evidence.ts';

/** A recorded value, and the proven value; undefined if nothing proves one. */
type Comparison = readonly [
  what: string,
  recorded: string | number | undefined,
  proven: string | number | undefined,
];

/** Verified facts about an image. */
interface Proof {
  readonly build: BuildFacts | undefined;
  readonly upload: UploadFacts | undefined;
}

/**
 * Compares records, which have no signature, with the files and with the verified attestations. A record that agrees
 * gives a proven link. A record without a counterpart gives no link.
 */
export function recordLinks(
  evidence: Evidence,
  chain: ChainReport,
  keys: readonly TrustedKey[],
): readonly Link[] {
  const proof: Proof = { build: chain.build, upload: attestedUpload(evidence, keys) };
  const links = evidence.records.flatMap((record): readonly Link[] => {
    const { place } = record;
    const subject = SUBJECTS[record.kind];
    if (record.kind === 'damaged') {
      return [{ kind: 'record', subject, state: 'refuted', reason: record.reason, place }];
    }
    const known = comparisons(record, evidence, proof).filter(
      ([, recorded, proven]) => recorded !== undefined && proven !== undefined,
    );
    const different = known.filter(([, recorded, proven]) => recorded !== proven);
    if (different.length > 0) {
      const reason = different.map(([what, recorded, proven]) => `${what} is ${recorded}, not ${proven}`);
      return [{ kind: 'record', subject, state: 'refuted', reason: reason.join('; '), place }];
    }
    if (known.length === 0) return [];
    const reason = `agrees in ${known.map(([what]) => what).join(', ')}`;
    return [{ kind: 'record', subject, state: 'proven', reason, place }];
  });
  return [...evidence.links, ...links];
}

const SUBJECTS: Readonly<Record<ImageRecord['kind'], string>> = {
  damaged: 'record of the builder',
  manifest: 'record of the builder',
  build: 'record of the build',
  upload: 'record of the upload',
  provider: 'properties in the provider',
};

function comparisons(
  record: Exclude<ImageRecord, { readonly kind: 'damaged' }>,
  evidence: Evidence,
  { build: built, upload: uploaded }: Proof,
): readonly Comparison[] {
  switch (record.kind) {
    case 'manifest': {
      const { manifest } = record;
      return [
        ['image-id', manifest['image-id'], evidence.imageId],
        ['image-name', manifest['image-name'], built?.imageName],
        ['start of the build', time(manifest.started), built?.startedAt?.getTime()],
        ['end of the build', time(manifest.finished), built?.finishedAt?.getTime()],
        ...manifest.files.flatMap(({ format, size, md5, sha256 }): readonly Comparison[] => {
          const file = evidence.files.find((one) => one.format === format);
          return [
            [`size of ${format}`, size, file?.size],
            [`MD5 of ${format}`, md5, file?.md5],
            [`SHA-256 of ${format}`, sha256, file?.sha256 ?? digestIn(built, evidence.imageId, format)],
          ];
        }),
      ];
    }
    case 'build': {
      const [format = '', digest] = record.build.checksum?.split(':') ?? [];
      return [
        ['disk image', record.build.diskimage, built?.imageName],
        [`SHA-256 of ${format}`, digest, digestIn(built, evidence.imageId, format)],
      ];
    }
    case 'upload': {
      const { id, imageId, provider, imageName, externalId, diskimage } = record.upload;
      return [
        ['upload-id', id, uploaded?.['upload-id']],
        ['image-id', imageId, uploaded?.['image-id']],
        ['provider', provider, uploaded?.provider],
        ['image-name', imageName, uploaded?.['image-name']],
        ['external-id', externalId, uploaded?.['external-id']],
        ['disk image', diskimage, built?.imageName],
      ];
    }
    case 'provider': {
      const { image } = record;
      return [
        ['image-id', image.imageId, uploaded?.['image-id']],
        ['upload-id', image.uploadId, uploaded?.['upload-id']],
        ['image-name', image.imageName, uploaded?.['image-name']],
        ['SHA-256', image.checksums?.sha256, uploaded?.sha256],
        ...Object.entries(image.reported ?? {}).map(
          ([name, digest]): Comparison => [
            `${name} of the stored bytes`,
            digest,
            uploaded?.['reported-digests'][name],
          ],
        ),
        ['attestation-sha256', record.buildDigest, uploaded?.['build-digest']],
      ];
    }
  }
}

/** Parses a time, because times may be written with different precision. */
function time(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** A file's digest in the statement about its build. */
function digestIn(
  build: BuildFacts | undefined,
  imageId: string | undefined,
  format: string,
): string | undefined {
  if (!isImageFormat(format)) return undefined;
  const name = `${imageId}.${formatRow(format).extension}`;
  return build?.subjects.find((subject) => subject.name === name)?.sha256;
}

/** Finds the verified facts of the upload of the evidence. */
function attestedUpload(
  { subject, attestations }: Evidence,
  keys: readonly TrustedKey[],
): UploadFacts | undefined {
  if (subject.kind !== 'upload') return undefined;
  return attestations
    .flatMap((found) => verifiedUpload(found, keys) ?? [])
    .find((one) => one.provider === subject.provider && one['external-id'] === subject.externalId);
}

function verifiedUpload(found: FoundAttestation, keys: readonly TrustedKey[]): UploadFacts | undefined {
  try {
    return uploadFactsOf(verifyBundle(found, keys).statement);
  } catch {
    return undefined; // the chain has the reason
  }
}
