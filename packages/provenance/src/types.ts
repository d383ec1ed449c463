import type { KeyObject } from 'node:crypto';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';

/** Makes signatures with the private key of a site. */
export interface Signer {
  /** SHA-256 of the public key's SubjectPublicKeyInfo in DER, in hexadecimal. */
  readonly keyId: string;
  readonly publicKey: KeyObject;
  /** Path of the private key; absent if a command signs. */
  readonly keyFile?: string;
  /** @throws ProvenanceError `key-unusable`, `signing-failed` */
  sign(data: Buffer, signal?: AbortSignal): Promise<Buffer>;
}

/** A public key for verifying signatures. */
export interface TrustedKey {
  readonly keyId: string;
  /** Path of its file, for messages. */
  readonly file: string;
  readonly key: KeyObject;
}

/** An in-toto statement (v1) in a verified or unverified bundle. */
export interface Statement {
  readonly subjects: readonly StatementSubject[];
  readonly predicateType: string;
  readonly predicate: unknown;
}

/** A file, and a digest of its bytes. */
export interface StatementSubject {
  readonly name: string;
  readonly sha256: string;
}

/** A sigstore bundle (v0.3) with a DSSE envelope, as JSON text. */
export type BundleText = string;

/** An attestation with the location at which it was found. */
export interface FoundAttestation {
  /** `/opt/images/.../build.sigstore.json`, `store of the manager`. */
  readonly place: string;
  readonly text: BundleText;
}

/** The subject whose origin is verified. */
export type VerifiedSubject =
  | { readonly kind: 'image'; readonly imageId: string; readonly files: readonly LocalFile[] }
  | {
      readonly kind: 'upload';
      readonly provider: string;
      readonly externalId: string;
      /** Digest of the bytes that were downloaded from the provider, for comparison. */
      readonly downloaded?: string;
    }
  | { readonly kind: 'file'; readonly path: string; readonly sha256: string };

/** A file on this host with the digest of its current bytes. */
export interface LocalFile {
  readonly path: string;
  readonly format: string;
  readonly sha256: string;
}

/** State of one link of the chain. `unproven`: there is no attestation. `refuted`: something contradicts it. */
export type LinkState = 'proven' | 'unproven' | 'refuted';

/** One link of the chain from a build to the subject, latest link first. */
export interface ChainLink {
  readonly kind: 'upload' | 'download' | 'file' | 'conversion' | 'build' | 'materials' | 'gate';
  /** `image 12-4abc in cloud as 7d1f…`. */
  readonly subject: string;
  readonly state: LinkState;
  /** Facts or the reason, for people. */
  readonly reason: string;
  /** Key that signed; absent if nothing was verified. */
  readonly keyId?: string;
  readonly keyFile?: string;
  readonly place?: string;
}

/** Schema of a {@link Package}. */
export const PACKAGE = objectOf(
  {
    name: TEXT,
    version: TEXT,
    /** Type in package URLs; `alpm` is pacman's. */
    type: { enum: ['deb', 'rpm', 'apk', 'alpm'] },
    /** Package URL. */
    purl: TEXT,
  },
  { architecture: TEXT, license: TEXT },
);

/** A package in a bill of materials. */
export type Package = SettingsOf<typeof PACKAGE>;

/** Differences between the packages of two images. */
export interface PackageChanges {
  readonly added: readonly Package[];
  readonly removed: readonly Package[];
  readonly changed: readonly { readonly before: Package; readonly after: Package }[];
}
