import type { SettingsOf } from '@nodepool-builder/image-builder';
import { COUNT, recordSchema, TEXT, TEXT_OR_NULL } from '../../terms/record-schema.ts';

const TEXTS = { type: 'array', items: TEXT } as const;
const STATE = {
  enum: ['proven', 'unproven', 'refuted'],
  description: '`unproven`: an attestation or a trusted key is missing. `refuted`: something contradicts.',
} as const;
const KEY_ID = {
  ...TEXT_OR_NULL,
  description: 'SHA-256 of the public key that verified the signature; null without a valid signature.',
} as const;

const LINK = recordSchema({
  kind: {
    enum: ['upload', 'download', 'file', 'conversion', 'build', 'materials', 'gate'],
    description: 'Kind of the link.',
  },
  subject: { ...TEXT, description: 'What the link is about.' },
  state: STATE,
  reason: { ...TEXT, description: 'What the attestation says, or what is missing or wrong.' },
  'key-id': KEY_ID,
  'key-file': { ...TEXT_OR_NULL, description: 'File of that key.' },
});

const PROOF = recordSchema({
  state: STATE,
  reason: { ...TEXT, description: 'The reason.' },
  'key-id': KEY_ID,
  'key-file': { ...TEXT_OR_NULL, description: 'File of that key.' },
  links: {
    type: 'array',
    items: LINK,
    description: 'The links of the chain back to the build, the last first.',
  },
});

const MATERIAL = recordSchema({
  name: { ...TEXT, description: 'Name of the repository, image, artifact or script.' },
  uri: { ...TEXT_OR_NULL, description: 'Its address; null if it has none.' },
  digests: { ...TEXTS, description: 'Its digests, such as `sha256:…` and `gitCommit:…`.' },
  facts: { ...TEXTS, description: 'Further facts, such as `job: build-debian`.' },
});

const PACKAGE = recordSchema({
  name: { ...TEXT, description: 'Name of the package.' },
  architecture: { ...TEXT_OR_NULL, description: 'Its architecture; null if it is unknown.' },
  version: { ...TEXT, description: 'Its version.' },
});

const CHANGED_PACKAGE = recordSchema({
  name: { ...TEXT, description: 'Name of the package.' },
  architecture: { ...TEXT_OR_NULL, description: 'Its architecture; null if it is unknown.' },
  before: { ...TEXT, description: 'Version in the build before.' },
  after: { ...TEXT, description: 'Version in this build.' },
});

const PACKAGES = recordSchema({
  count: { type: ['integer', 'null'], minimum: 0, description: 'Number of packages; null if it is unknown.' },
  'compared-with': {
    ...TEXT_OR_NULL,
    description: 'Id of the build of the same disk image before; null if nothing can be compared.',
  },
  reason: { ...TEXT_OR_NULL, description: 'Why nothing can be compared; null if it can.' },
  added: { type: 'array', items: PACKAGE, description: 'Packages that are new.' },
  removed: { type: 'array', items: PACKAGE, description: 'Packages that are gone.' },
  changed: { type: 'array', items: CHANGED_PACKAGE, description: 'Packages with another version.' },
});

/** Schema of an {@link UploadOrigin}. */
export const UPLOAD_ORIGIN = recordSchema({
  'upload-id': { ...TEXT, description: 'Id of the upload.' },
  'image-id': { ...TEXT, description: 'Id of the image.' },
  provider: { ...TEXT, description: 'Name of the provider.' },
  'image-name': { ...TEXT, description: 'Name of the image in `providers[].images`.' },
  'external-id': { ...TEXT_OR_NULL, description: "The provider's id of the image; null before it is ready." },
  proof: { ...PROOF, description: 'Where the proof of the upload stands, without a look at the provider.' },
});

/** Schema of a {@link BuildOrigin}. */
export const BUILD_ORIGIN = recordSchema({
  'image-id': { ...TEXT, description: 'Id of the image.' },
  diskimage: { ...TEXT_OR_NULL, description: 'Name of the disk image; null if it is in no record.' },
  proof: { ...PROOF, description: 'Where the proof of the build stands, without a look at its files.' },
  builder: { ...TEXT_OR_NULL, description: 'Id of the builder, as the attestation says.' },
  started: { ...TEXT_OR_NULL, description: 'Start of the build, in ISO 8601, as the attestation says.' },
  finished: { ...TEXT_OR_NULL, description: 'End of the build, in ISO 8601, as the attestation says.' },
  materials: { type: 'array', items: MATERIAL, description: 'What the build used, as the attestation says.' },
  packages: { ...PACKAGES, description: 'Packages, and what changed since the build before.' },
  uploads: {
    type: 'array',
    items: UPLOAD_ORIGIN,
    description: 'The newest uploads that have an image in a provider.',
  },
  'more-uploads': { ...COUNT, description: 'Number of older uploads that are left out.' },
});

/** Where the proof of a build or an upload stands. */
export type Proof = SettingsOf<typeof PROOF>;
/** What a build used. */
export type MaterialRecord = SettingsOf<typeof MATERIAL>;
/** Packages of a build, and the changes since the build before. */
export type PackagesRecord = SettingsOf<typeof PACKAGES>;
/** Where an upload comes from. */
export type UploadOrigin = SettingsOf<typeof UPLOAD_ORIGIN>;
/** Where a build and its uploads come from. */
export type BuildOrigin = SettingsOf<typeof BUILD_ORIGIN>;
