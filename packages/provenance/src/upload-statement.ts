import type { ImageFormat, SettingsOf } from '@nodepool-builder/image-builder';
import { imageFileName, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { ProvenanceError } from './errors.ts';
import type { Statement } from './types.ts';

export const UPLOAD_PREDICATE = 'https://nodepool-builder.dev/upload/v1';

const PREDICATE = objectOf(
  {
    /** `providers[].name`. */
    provider: TEXT,
    /** `providers[].type`. */
    'provider-type': TEXT,
    'image-name': TEXT,
    'upload-id': TEXT,
    'external-id': TEXT,
    'image-id': TEXT,
    'uploaded-on': { ...TEXT, format: 'date-time' },
    /** Digests that the provider reports, by the name of their algorithm. */
    'reported-digests': { type: 'object', additionalProperties: TEXT },
  },
  {
    region: TEXT,
    /** True if the provider stores other bytes than the file's, because it has converted them. Default false. */
    converted: { type: 'boolean' },
    /** SHA-256 of the payload of the build's attestation; absent if the build was not attested. */
    'build-digest': TEXT,
  },
);

type Predicate = SettingsOf<typeof PREDICATE>;

/** An upload that has succeeded. */
export interface FinishedUpload extends Omit<Predicate, 'uploaded-on' | 'build-digest'> {
  readonly format: ImageFormat;
  /** SHA-256 of the uploaded file. */
  readonly sha256: string;
  /** `images-dir`. */
  readonly directory: string;
}

/** Makes the statement of an upload. */
export function uploadStatement(
  { format, sha256, directory: _, ...facts }: FinishedUpload,
  uploaded: Date,
  buildDigest: string | undefined,
): Statement {
  return {
    subjects: [{ name: imageFileName(facts['image-id'], format), sha256 }],
    predicateType: UPLOAD_PREDICATE,
    predicate: {
      ...facts,
      'uploaded-on': uploaded.toISOString(),
      ...(buildDigest !== undefined && { 'build-digest': buildDigest }),
    },
  };
}

const READER = new JsonReader(PREDICATE);

/** Facts of an upload, from its statement. */
export interface UploadFacts extends Predicate {
  /** Name of the uploaded file. */
  readonly fileName: string;
  /** SHA-256 of the uploaded file. */
  readonly sha256: string;
}

/**
 * Reads the facts of an upload's statement.
 *
 * @returns undefined for a predicate of another type
 * @throws ProvenanceError `statement-invalid`
 */
export function uploadFactsOf({ subjects, predicateType, predicate }: Statement): UploadFacts | undefined {
  if (predicateType !== UPLOAD_PREDICATE) return undefined;
  const [subject] = subjects;
  try {
    const facts = READER.check(predicate, 'predicate');
    if (subject === undefined || subjects.length > 1) throw new Error('it does not have exactly one subject');
    return { ...facts, fileName: subject.name, sha256: subject.sha256 };
  } catch (error) {
    const message = `the statement of an upload is not valid: ${(error as Error).message}`;
    throw new ProvenanceError('statement-invalid', message, { cause: error });
  }
}
