import type { SettingsOf } from '@nodepool-builder/image-builder';
import { COUNT, recordSchema, TEXT, TEXT_OR_NULL } from '../../terms/record-schema.ts';

const TEXTS = { type: 'array', items: TEXT } as const;
const STATE = {
  enum: ['proven', 'unproven', 'refuted'],
  description:
    '`unproven`: an attestation or a trusted key is missing. `refuted`: something contradicts the attestation.',
} as const;
const KEY_ID = {
  ...TEXT_OR_NULL,
  description: 'SHA-256 of the public key that verified the signature; null without a valid signature.',
} as const;

/** Schema of a link of the chain from an image back to its build. */
export const LINK = recordSchema({
  kind: {
    enum: ['upload', 'download', 'file', 'conversion', 'build', 'materials', 'gate'],
    description: 'Kind of the link.',
  },
  subject: { ...TEXT, description: 'The subject of the link.' },
  state: STATE,
  reason: { ...TEXT, description: 'What the attestation states, or what is missing or wrong.' },
  'key-id': KEY_ID,
  'key-file': { ...TEXT_OR_NULL, description: 'File of the public key.' },
});

const PROOF = recordSchema({
  state: STATE,
  reason: { ...TEXT, description: 'The reason.' },
  'key-id': KEY_ID,
  'key-file': { ...TEXT_OR_NULL, description: 'File of the public key.' },
  links: {
    type: 'array',
    items: LINK,
    description: 'The links of the chain back to the build, newest first.',
  },
});

const MATERIAL = recordSchema({
  name: { ...TEXT, description: 'Name of the repository, image, artifact or script.' },
  uri: { ...TEXT_OR_NULL, description: 'Address of the material; null if it has none.' },
  digests: { ...TEXTS, description: 'Digests of the material, such as `sha256:…` and `gitCommit:…`.' },
  facts: { ...TEXTS, description: 'Further facts, such as `job: build-debian`.' },
});

const PACKAGE = recordSchema({
  name: { ...TEXT, description: 'Name of the package.' },
  architecture: { ...TEXT_OR_NULL, description: 'Architecture of the package; null if it is unknown.' },
  version: { ...TEXT, description: 'Version of the package.' },
});

const CHANGED_PACKAGE = recordSchema({
  name: { ...TEXT, description: 'Name of the package.' },
  architecture: { ...TEXT_OR_NULL, description: 'Architecture of the package; null if it is unknown.' },
  before: { ...TEXT, description: 'Version in the previous build.' },
  after: { ...TEXT, description: 'Version in this build.' },
});

const PACKAGES = recordSchema({
  count: { type: ['integer', 'null'], minimum: 0, description: 'Number of packages; null if it is unknown.' },
  'compared-with': {
    ...TEXT_OR_NULL,
    description: 'Id of the previous build of the same disk image; null if the two cannot be compared.',
  },
  reason: { ...TEXT_OR_NULL, description: 'Reason why the builds cannot be compared; null if they can.' },
  added: { type: 'array', items: PACKAGE, description: 'Packages that are new.' },
  removed: { type: 'array', items: PACKAGE, description: 'Packages that were removed.' },
  changed: { type: 'array', items: CHANGED_PACKAGE, description: 'Packages with another version.' },
});

/** Schema of an {@link UploadOrigin}. */
export const UPLOAD_ORIGIN = recordSchema({
  'upload-id': { ...TEXT, description: 'Id of the upload.' },
  'image-id': { ...TEXT, description: 'Id of the image.' },
  provider: { ...TEXT, description: 'Name of the provider.' },
  'image-name': { ...TEXT, description: 'Name of the image in `providers[].images`.' },
  'external-id': { ...TEXT_OR_NULL, description: "The provider's id of the image; null before it is ready." },
  proof: { ...PROOF, description: 'Proof state of the upload, without a query to the provider.' },
});

/** Schema of a {@link BuildOrigin}. */
export const BUILD_ORIGIN = recordSchema({
  'image-id': { ...TEXT, description: 'Id of the image.' },
  diskimage: { ...TEXT_OR_NULL, description: 'Name of the disk image; null if no record contains it.' },
  proof: { ...PROOF, description: 'Proof state of the build, without a check of its files.' },
  builder: { ...TEXT_OR_NULL, description: 'Id of the builder, according to the attestation.' },
  started: { ...TEXT_OR_NULL, description: 'Start of the build in ISO 8601, according to the attestation.' },
  finished: { ...TEXT_OR_NULL, description: 'End of the build in ISO 8601, according to the attestation.' },
  materials: {
    type: 'array',
    items: MATERIAL,
    description: 'Materials of the build, according to the attestation.',
  },
  packages: { ...PACKAGES, description: 'Packages, and their changes since the previous build.' },
  uploads: {
    type: 'array',
    items: UPLOAD_ORIGIN,
    description: 'The newest uploads that have an image in a provider.',
  },
  'more-uploads': { ...COUNT, description: 'Number of older uploads that are left out.' },
});

/** Proof state of a build or an upload. */
export type Proof = SettingsOf<typeof PROOF>;
/** A material of a build. */
export type MaterialRecord = SettingsOf<typeof MATERIAL>;
/** Packages of a build, and their changes since the previous build. */
export type PackagesRecord = SettingsOf<typeof PACKAGES>;
/** Origin of an upload. */
export type UploadOrigin = SettingsOf<typeof UPLOAD_ORIGIN>;
/** Origin of a build and its uploads. */
export type BuildOrigin = SettingsOf<typeof BUILD_ORIGIN>;
