import type { ImageFormat } from '@nodepool-builder/image-builder';
import { imageFileName, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { ProvenanceError } from './errors.ts';
import type { Statement } from './types.ts';

export const UPLOAD_PREDICATE = 'https://nodepool-builder.dev/upload/v1';

/** An upload that has succeeded. */
export interface UploadFacts {
  readonly imageId: string;
  readonly imageName: string;
  /** `providers[].name`. */
  readonly provider: string;
  /** `providers[].type`. */
  readonly providerType: string;
  readonly region?: string;
  readonly uploadId: string;
  readonly externalId: string;
  readonly format: ImageFormat;
  /** SHA-256 of the uploaded file. */
  readonly sha256: string;
  /** Digests that the provider reports, by the name of their algorithm. */
  readonly reportedDigests: Readonly<Record<string, string>>;
  /** True if the provider stores other bytes than the file's, because it has converted them. Default false. */
  readonly isConverted?: boolean;
  /** `images-dir`. */
  readonly directory: string;
}

/** Makes the statement of an upload. */
export function uploadStatement(
  facts: UploadFacts,
  uploaded: Date,
  buildDigest: string | undefined,
): Statement {
  const { imageId, format, sha256, region } = facts;
  return {
    subjects: [{ name: imageFileName(imageId, format), sha256 }],
    predicateType: UPLOAD_PREDICATE,
    predicate: {
      provider: facts.provider,
      'provider-type': facts.providerType,
      ...(region !== undefined && { region }),
      'image-name': facts.imageName,
      'upload-id': facts.uploadId,
      'external-id': facts.externalId,
      'image-id': imageId,
      'uploaded-on': uploaded.toISOString(),
      'reported-digests': facts.reportedDigests,
      ...(facts.isConverted && { converted: true }),
      ...(buildDigest !== undefined && { 'build-digest': buildDigest }),
    },
  };
}

const READER = new JsonReader(
  objectOf(
    {
      provider: TEXT,
      'provider-type': TEXT,
      'image-name': TEXT,
      'upload-id': TEXT,
      'external-id': TEXT,
      'image-id': TEXT,
      'uploaded-on': { ...TEXT, format: 'time' },
      'reported-digests': { type: 'object', additionalProperties: TEXT },
    },
    { region: TEXT, converted: { type: 'boolean' }, 'build-digest': TEXT },
  ),
);

/** Facts of an upload, from its statement. */
export interface AttestedUpload extends Omit<UploadFacts, 'format' | 'isConverted' | 'directory'> {
  /** Name of the uploaded file. */
  readonly fileName: string;
  readonly isConverted: boolean;
  readonly uploadedAt: Date;
  /** SHA-256 of the payload of the build's attestation; absent if the build was not attested. */
  readonly buildDigest?: string;
}

/**
 * Reads the facts of an upload's statement.
 *
 * @returns undefined for a predicate of another type
 * @throws ProvenanceError `statement-invalid`
 */
export function uploadFactsOf({ subjects, predicateType, predicate }: Statement): AttestedUpload | undefined {
  if (predicateType !== UPLOAD_PREDICATE) return undefined;
  const [subject] = subjects;
  let facts: ReturnType<(typeof READER)['check']>;
  try {
    facts = READER.check(predicate, 'predicate');
    if (subject === undefined || subjects.length > 1) throw new Error('it does not have exactly one subject');
  } catch (error) {
    const message = `the statement of an upload is not valid: ${(error as Error).message}`;
    throw new ProvenanceError('statement-invalid', message, { cause: error });
  }
  const { region, 'build-digest': buildDigest } = facts;
  return {
    provider: facts.provider,
    providerType: facts['provider-type'],
    ...(region !== undefined && { region }),
    imageName: facts['image-name'],
    imageId: facts['image-id'],
    uploadId: facts['upload-id'],
    externalId: facts['external-id'],
    uploadedAt: new Date(facts['uploaded-on']),
    reportedDigests: facts['reported-digests'],
    isConverted: facts.converted ?? false,
    ...(buildDigest !== undefined && { buildDigest }),
    fileName: subject.name,
    sha256: subject.sha256,
  };
}
