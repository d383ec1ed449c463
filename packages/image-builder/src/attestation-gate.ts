import type { SettingsOf, SettingsSchema } from './settings-schema.ts';

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
      description: 'Ids of the builders that may have built the image; `*` matches any text. Default: any.',
    },
    'source-repositories': {
      ...TEXTS,
      description:
        'URLs of the repositories that a build may use; `*` matches any text. Each material with a git revision must ' +
        'match one. Default: any.',
    },
    'max-age': {
      type: 'number',
      exclusiveMinimum: 0,
      description: 'Maximum seconds since the end of the build. Default: any.',
    },
    'forbidden-packages': {
      ...TEXTS,
      description:
        'Packages that the bill of materials must not contain: `NAME`, or `NAME@VERSION`. An image without a bill of ' +
        'materials is then rejected.',
    },
  },
} as const satisfies SettingsSchema;

/** Rules of `require-attestation`, with absolute paths. */
export type RequiredAttestation = SettingsOf<typeof REQUIRE_ATTESTATION>;

/** An imported file that a builder is about to use. */
export interface GatedFile {
  /** Name for people: `artifact https://…/debian.qcow2`. */
  readonly name: string;
  /** The file name in the attestations. */
  readonly fileName: string;
  /** Digest of the attested bytes. */
  readonly sha256: string;
  /** Sigstore bundles, each with its location. */
  readonly attestations: readonly { readonly place: string; readonly text: string }[];
}
