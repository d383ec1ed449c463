import { createHash } from 'node:crypto';
import type { Logger } from '@nodepool-builder/image-builder';
import { errorMessage, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

/**
 * A document about the origin of an image, which a builder returned with the result of a job. The store keeps it as
 * long as the record of the build, or of the upload if it has one.
 */
export interface ImageDocument {
  /** `attestation`: a sigstore bundle. `packages`: the package list of the image, in gzip and base64. */
  readonly kind: 'attestation' | 'packages';
  /** Id of the build. */
  readonly imageId: string;
  /** Id of the upload that an attestation is about; absent if it is about the build or a converted file. */
  readonly uploadId?: string;
  readonly text: string;
}

/** Maximum size of a document, in bytes. */
const MAX_SIZE = 2 ** 20;

/** Maximum number of attestations that one job may return. */
const MAX_ATTESTATIONS = 16;

/** Predicate type of the statement about an upload. */
const UPLOAD_PREDICATE = 'https://nodepool-builder.dev/upload/v1';

const BUNDLE = new JsonReader(objectOf({ dsseEnvelope: objectOf({ payload: TEXT }) }));

const STATEMENT = new JsonReader(objectOf({ predicateType: TEXT }));

/**
 * Reads the documents in the result of a job. Signatures are verified by the readers of the documents. A document that
 * cannot be stored is left out with a warning, because a job never fails for it.
 *
 * @param result fields of the result, not yet validated
 * @param uploadId id of the upload whose job returned them
 */
export function documentsOf(
  { attestations = [], packages }: { readonly attestations?: unknown; readonly packages?: unknown },
  imageId: string,
  uploadId: string | undefined,
  logger: Pick<Logger, 'warn'>,
): readonly ImageDocument[] {
  const documents: ImageDocument[] = [];
  const leaveOut = (what: string, reason: string): void => {
    const place = uploadId === undefined ? `build ${imageId}` : `upload ${uploadId} of ${imageId}`;
    logger.warn(`${place}: ${what} that the builder returned is not stored: ${reason}`);
  };
  const add = (kind: ImageDocument['kind'], text: unknown, what: string): void => {
    try {
      checkDocument(kind, text);
      const isOfUpload =
        uploadId !== undefined && kind === 'attestation' && predicateTypeOf(text) === UPLOAD_PREDICATE;
      documents.push({ kind, imageId, ...(isOfUpload && { uploadId }), text });
    } catch (error) {
      leaveOut(what, errorMessage(error));
    }
  };
  if (!Array.isArray(attestations)) leaveOut('the list of attestations', 'it is not an array');
  else {
    for (const [index, text] of attestations.slice(0, MAX_ATTESTATIONS).entries()) {
      add('attestation', text, `attestation ${index + 1}`);
    }
    if (attestations.length > MAX_ATTESTATIONS) {
      const rest = `attestation ${MAX_ATTESTATIONS + 1} and the rest`;
      leaveOut(rest, `the limit is ${MAX_ATTESTATIONS} attestations`);
    }
  }
  if (packages !== undefined) add('packages', packages, 'the package list');
  return documents;
}

/** @throws Error if a store cannot keep this as the text of a document of this kind */
export function checkDocument(kind: ImageDocument['kind'], text: unknown): asserts text is string {
  if (typeof text !== 'string') throw new Error('it is not text');
  const size = Buffer.byteLength(text);
  if (size > MAX_SIZE) throw new Error(`it has ${size} bytes, and the limit is ${MAX_SIZE}`);
  if (!text.isWellFormed()) throw new Error('it is not valid Unicode');
  if (kind === 'attestation') predicateTypeOf(text);
  else if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw new Error('it is not base64');
}

/** Returns the predicate type of the statement in a bundle. @throws Error if it is not a bundle */
function predicateTypeOf(bundle: string): string {
  const { payload } = BUNDLE.parse(bundle).dsseEnvelope;
  return STATEMENT.parse(Buffer.from(payload, 'base64').toString('utf8')).predicateType;
}

/** Key of a document within its image: the SHA-256 of its text, in hexadecimal. */
export function documentDigest({ text }: Pick<ImageDocument, 'text'>): string {
  return createHash('sha256').update(text).digest('hex');
}
