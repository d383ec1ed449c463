import type { SettingsOf, SettingsSchema } from './settings-schema.ts';
import type { OperationOptions } from './types.ts';

const TEXTS = { type: 'array', items: { type: 'string', minLength: 1 } } as const;

/** Keys of `require-attestation`: at the top level, in a provider, and in a disk image that is imported. */
export const REQUIRE_ATTESTATION = {
  type: 'object',
  additionalProperties: false,
  properties: {
    'trusted-keys': {
      type: 'array',
      minItems: 1,
      items: { type: 'string', minLength: 1, format: 'path' },
      description:
        'PEM files with the public keys whose signatures count. Default: the trusted keys of `attestation`.',
    },
    builders: {
      ...TEXTS,
      description:
        'Ids of the builders that may have built the image; `*` stands for any text. Default: any.',
    },
    'source-repositories': {
      ...TEXTS,
      description:
        'URLs of the repositories that a build may use; `*` stands for any text. Each material with a git revision must ' +
        'match one. Default: any.',
    },
    'max-age': {
      type: 'number',
      exclusiveMinimum: 0,
      description: 'Seconds since the end of the build. Default: any.',
    },
    'forbidden-packages': {
      ...TEXTS,
      description:
        'Packages that the bill of materials must not contain: `NAME`, or `NAME@VERSION`. An image without a bill of ' +
        'materials is refused then.',
    },
  },
} as const satisfies SettingsSchema;

/** Rules of `require-attestation`, with absolute paths. */
export type RequiredAttestation = SettingsOf<typeof REQUIRE_ATTESTATION>;

/** A file from elsewhere that a builder is about to use. */
export interface GatedFile {
  /** Name for people: `artifact https://…/debian.qcow2`. */
  readonly name: string;
  /** Name that the attestations must have for it. */
  readonly fileName: string;
  /** Digest of the bytes that the attestations are about. */
  readonly sha256: string;
  /** Bundles of sigstore, each with the place where it was found. */
  readonly attestations: readonly { readonly place: string; readonly text: string }[];
}

/** Decides by attestations whether a file may be used. */
export interface AttestationGate {
  /** @throws ImageError `attestation-refused` with the rule that refuses the file */
  check(file: GatedFile, options?: OperationOptions): Promise<void>;
}
