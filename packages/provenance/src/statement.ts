import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { ProvenanceError } from './errors.ts';
import type { Statement } from './types.ts';

/** Type of the statements that this package writes. */
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';

/** Type of statements that cosign 2 writes, with the same keys. */
const OLDER_TYPE = 'https://in-toto.io/Statement/v0.1';

const SUBJECT = objectOf({ name: TEXT, digest: objectOf({ sha256: { ...TEXT, minLength: 64 } }) });

const READER = new JsonReader(
  objectOf({
    _type: { enum: [STATEMENT_TYPE, OLDER_TYPE] },
    subject: { type: 'array', minItems: 1, items: SUBJECT },
    predicateType: TEXT,
    predicate: { type: 'object' },
  }),
);

/** Reads the payload of an envelope. @throws ProvenanceError `statement-invalid` */
export function readStatement(payload: Buffer, place: string): Statement {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(payload);
    const { subject, predicateType, predicate } = READER.parse(text);
    const subjects = subject.map(({ name, digest: { sha256 } }) => ({ name, sha256 }));
    return { subjects, predicateType, predicate };
  } catch (error) {
    const reason = (error as Error).message;
    const message = `the attestation "${place}" contains no in-toto statement with SHA-256 digests: ${reason}`;
    throw new ProvenanceError('statement-invalid', message, { cause: error });
  }
}
