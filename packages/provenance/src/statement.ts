import type { ObjectSchema } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { ProvenanceError } from './errors.ts';
import type { Statement } from './types.ts';

/** Type of the statements that this package writes. */
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';

/** Type of statements that cosign 2 writes, with the same keys. */
const OLDER_TYPE = 'https://in-toto.io/Statement/v0.1';

const STATEMENT = {
  type: 'object',
  required: ['_type', 'subject', 'predicateType', 'predicate'],
  properties: {
    _type: { enum: [STATEMENT_TYPE, OLDER_TYPE] },
    subject: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['name', 'digest'],
        properties: {
          name: { type: 'string' },
          digest: {
            type: 'object',
            required: ['sha256'],
            properties: { sha256: { type: 'string', minLength: 64 } },
          },
        },
      },
    },
    predicateType: { type: 'string' },
    predicate: { type: 'object' },
  },
} as const satisfies ObjectSchema;

const READER = new JsonReader(STATEMENT);

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
