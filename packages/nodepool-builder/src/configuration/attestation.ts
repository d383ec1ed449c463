import type { RequiredAttestation, SettingsOf, SettingsSchema } from '@nodepool-builder/image-builder';
import { REQUIRE_ATTESTATION } from '@nodepool-builder/image-builder/internal';
import { TEXT } from '../yaml/schema-node.ts';

const FILE = { ...TEXT, format: 'path' } as const;

/** Schema of `attestation`. */
export const ATTESTATION = {
  type: 'object',
  additionalProperties: false,
  description:
    'Key with which this site attests its builds, conversions and uploads: signed statements next to the images document ' +
    'their origin. Default: nothing is attested.',
  properties: {
    key: {
      ...FILE,
      description:
        'PEM file with the private key, Ed25519 or ECDSA P-256 or P-384, which no other user may read. A daemon that ' +
        'runs as root hides the file from builds. Any other daemon needs `sign-command`.',
    },
    'sign-command': {
      type: 'array',
      items: TEXT,
      minItems: 1,
      format: 'program',
      description:
        'Command that signs with a KMS or an HSM instead of a key file. It gets the data on standard input and writes ' +
        'the signature to standard output, in DER for ECDSA. It requires `public-key`.',
    },
    'public-key': { ...FILE, description: 'PEM file with the public key. Default: the public key of `key`.' },
    'trusted-keys': {
      type: 'array',
      minItems: 1,
      items: FILE,
      description:
        'PEM files with the public keys whose signatures count, here and by default in `require-attestation`. Default: ' +
        'the signing key.',
    },
    'builder-id': {
      ...TEXT,
      description: 'URI that names this builder in attestations. Default: `nodepool-builder://HOSTNAME`.',
    },
    'bill-of-materials': {
      type: 'boolean',
      default: true,
      description:
        'List the packages of each image in a `bom.cdx.json` next to the image. Builds with diskimage-builder get the ' +
        'element `package-list`.',
    },
  },
} as const satisfies SettingsSchema;

/** The section `attestation`, with absolute paths. */
export type AttestationSettings = SettingsOf<typeof ATTESTATION>;

/** `require-attestation` of the top level. */
export const REQUIRED_FOR_ALL = {
  ...REQUIRE_ATTESTATION,
  description:
    'Attestations that an image must have before it is uploaded, regardless of who put it into `images-dir`. An upload that ' +
    'breaks a rule fails before anything is sent. Default: none.',
} as const satisfies SettingsSchema;

/** `require-attestation` of a provider. */
export const REQUIRED_FOR_PROVIDER = {
  ...REQUIRE_ATTESTATION,
  description:
    'Attestations that an image must have before it is uploaded to this provider, instead of `require-attestation` of ' +
    'the top level.',
} as const satisfies SettingsSchema;

/** Returns whether a site signs its attestations. */
export function isSigning(settings: AttestationSettings | undefined): settings is AttestationSettings {
  return settings?.key !== undefined || settings?.['sign-command'] !== undefined;
}

/** Files of the keys that a gate trusts. An empty list means the key of `attestation.key`. */
export function trustedKeyFiles(
  gate: RequiredAttestation | undefined,
  settings: AttestationSettings | undefined,
): readonly string[] {
  const own = settings?.['public-key'];
  return gate?.['trusted-keys'] ?? settings?.['trusted-keys'] ?? (own === undefined ? [] : [own]);
}
