import { createHash } from 'node:crypto';
import type { ObjectSchema, SettingsOf } from '@nodepool-builder/image-builder';
import { MAX_ATTESTATION_SIZE, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { ProvenanceError } from './errors.ts';
import { verifySignature } from './signer.ts';
import type { BundleText, FoundAttestation, Signer, Statement, TrustedKey } from './types.ts';

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

const MEDIA_TYPES = [
  'application/vnd.dev.sigstore.bundle.v0.3+json',
  'application/vnd.dev.sigstore.bundle+json;version=0.3',
] as const;

/** Makes the schema of an object without other keys, so that a change of an optional key is noticed. */
function only<const S extends ObjectSchema>(schema: S) {
  return { ...schema, additionalProperties: false } as const;
}

const SIGNATURE = only(objectOf({ sig: TEXT }, { keyid: TEXT }));

const BUNDLE = only(
  objectOf({
    mediaType: { enum: MEDIA_TYPES },
    verificationMaterial: only(
      objectOf(
        { publicKey: only(objectOf({ hint: TEXT })) },
        {
          tlogEntries: { type: 'array' },
          timestampVerificationData: only(objectOf({}, { rfc3161Timestamps: { type: 'array' } })),
        },
      ),
    ),
    dsseEnvelope: only(
      objectOf({
        payload: TEXT,
        payloadType: { const: PAYLOAD_TYPE },
        signatures: { type: 'array', minItems: 1, maxItems: 1, items: SIGNATURE },
      }),
    ),
  }),
);

const READER = new JsonReader(BUNDLE);

/** Type of the statements that this package writes. */
const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';

/** Type of statements that cosign 2 writes, with the same keys. */
const OLDER_TYPE = 'https://in-toto.io/Statement/v0.1';

const SUBJECT = objectOf({ name: TEXT, digest: objectOf({ sha256: { ...TEXT, minLength: 64 } }) });

const STATEMENT = new JsonReader(
  objectOf({
    _type: { enum: [STATEMENT_TYPE, OLDER_TYPE] },
    subject: { type: 'array', minItems: 1, items: SUBJECT },
    predicateType: TEXT,
    predicate: { type: 'object' },
  }),
);

/** A statement whose signature was verified. */
export interface VerifiedStatement {
  readonly statement: Statement;
  readonly keyId: string;
  readonly keyFile: string;
  /** SHA-256 of the payload, in hexadecimal. */
  readonly digest: string;
}

/**
 * Signs a statement.
 *
 * @throws ProvenanceError `key-unusable`, `signing-failed`, `bundle-too-large`
 */
export async function signStatement(
  statement: Statement,
  signer: Signer,
  signal?: AbortSignal,
): Promise<BundleText> {
  const payload = Buffer.from(
    JSON.stringify({
      _type: STATEMENT_TYPE,
      subject: statement.subjects.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
      predicateType: statement.predicateType,
      predicate: statement.predicate,
    }),
  );
  const signature = await signer.sign(preAuthenticationEncoding(payload), signal);
  const bundle: SettingsOf<typeof BUNDLE> = {
    mediaType: MEDIA_TYPES[0],
    verificationMaterial: { publicKey: { hint: signer.keyId }, timestampVerificationData: {} },
    dsseEnvelope: {
      payload: payload.toString('base64'),
      payloadType: PAYLOAD_TYPE,
      signatures: [{ sig: signature.toString('base64'), keyid: signer.keyId }],
    },
  };
  const text = JSON.stringify(bundle);
  if (Buffer.byteLength(text) > MAX_ATTESTATION_SIZE) {
    const names = statement.subjects.map(({ name }) => name).join(', ');
    const remedy = 'reduce the variables or elements of the disk image';
    const message = `the attestation of ${names} would exceed ${MAX_ATTESTATION_SIZE} bytes; ${remedy}`;
    throw new ProvenanceError('bundle-too-large', message);
  }
  return text;
}

/**
 * Verifies a bundle with the trusted keys and reads its statement.
 *
 * @throws ProvenanceError `bundle-invalid`, `bundle-too-large`, `key-untrusted`, `signature-invalid`, `statement-invalid`
 */
export function verifyBundle(
  { place, text }: FoundAttestation,
  keys: readonly TrustedKey[],
): VerifiedStatement {
  const { payload, signature, hint } = openBundle(text, place);
  const trusted = keys.find(({ keyId }) => isHintOf(hint, keyId));
  if (trusted === undefined) {
    const message = `the attestation "${place}" was signed with the key ${shown(hint)}, which is not trusted`;
    throw new ProvenanceError('key-untrusted', `${message}; add its file to trusted-keys if it should be`);
  }
  if (!verifySignature(trusted.key, preAuthenticationEncoding(payload), signature)) {
    const message = `the attestation "${place}" or its signature was changed: it does not match the key "${trusted.file}"`;
    throw new ProvenanceError('signature-invalid', message);
  }
  const statement = readStatement(payload, place);
  return { statement, keyId: trusted.keyId, keyFile: trusted.file, digest: hexDigest(payload) };
}

/**
 * Returns the SHA-256 of a bundle's payload, in hexadecimal. @throws ProvenanceError `bundle-invalid`,
 * `bundle-too-large`
 */
export function payloadDigest(text: BundleText): string {
  return hexDigest(openBundle(text, 'given').payload);
}

/** Returns the unverified statement of a bundle. @throws ProvenanceError */
export function unverifiedStatement({ place, text }: FoundAttestation): Statement {
  return readStatement(openBundle(text, place).payload, place);
}

/** Reads the payload of an envelope. @throws ProvenanceError `statement-invalid` */
export function readStatement(payload: Buffer, place: string): Statement {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(payload);
    const { subject, predicateType, predicate } = STATEMENT.parse(text);
    const subjects = subject.map(({ name, digest: { sha256 } }) => ({ name, sha256 }));
    return { subjects, predicateType, predicate };
  } catch (error) {
    const reason = (error as Error).message;
    const message = `the attestation "${place}" contains no in-toto statement with SHA-256 digests: ${reason}`;
    throw new ProvenanceError('statement-invalid', message, { cause: error });
  }
}

/** Returns the bytes that a DSSE signature covers. */
export function preAuthenticationEncoding(payload: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${Buffer.byteLength(PAYLOAD_TYPE)} ${PAYLOAD_TYPE} ${payload.length} `),
    payload,
  ]);
}

/** Returns the parts of a bundle that verification needs. */
function openBundle(text: BundleText, place: string) {
  if (Buffer.byteLength(text) > MAX_ATTESTATION_SIZE) {
    const message = `the attestation "${place}" is larger than ${MAX_ATTESTATION_SIZE} bytes`;
    throw new ProvenanceError('bundle-too-large', message);
  }
  try {
    const { verificationMaterial, dsseEnvelope } = READER.parse(text);
    const [signature] = dsseEnvelope.signatures;
    if (signature === undefined) throw new Error('it has no signature');
    const { hint } = verificationMaterial.publicKey;
    if (signature.keyid !== undefined && signature.keyid !== '' && signature.keyid !== hint) {
      throw new Error('its two key ids differ');
    }
    return {
      payload: decoded(dsseEnvelope.payload, 'payload'),
      signature: decoded(signature.sig, 'signature'),
      hint,
    };
  } catch (error) {
    const reason = (error as Error).message;
    const message = `the attestation "${place}" is damaged or not a sigstore bundle v0.3 with a DSSE envelope: ${reason}`;
    throw new ProvenanceError('bundle-invalid', message, { cause: error });
  }
}

/** Decodes base64 strictly, unlike Buffer, so that no two texts represent the same bytes. */
function decoded(text: string, name: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === 0 || bytes.toString('base64') !== text) throw new Error(`its ${name} is not base64`);
  return bytes;
}

/** Returns whether a hint names a key. cosign writes the same digest in base64. */
function isHintOf(hint: string, keyId: string): boolean {
  return hint === keyId || hint === Buffer.from(keyId, 'hex').toString('base64');
}

/** Formats a hint for a message, because it may be any text. */
function shown(hint: string): string {
  return /^[\w+/=.-]{1,100}$/.test(hint) ? hint : 'of an invalid id';
}

function hexDigest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
