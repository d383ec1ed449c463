import type { ImageDocument } from '../../src/documents.ts';
import { imageIdOf, uploadIdOf } from '../../src/ownership.ts';
import type { Build, Upload } from '../../src/records.ts';

/** Makes the record of a new build, with some fields changed. */
export function build(owner: string, number: number, fields: Partial<Build> = {}): Build {
  return {
    id: imageIdOf('debian', number, owner),
    diskimage: 'debian',
    state: 'building',
    configuration: 'c0ffee',
    reason: 'its first ready build',
    requestedAt: Date.UTC(2026, 0, 1) + number,
    withdrawn: false,
    ...fields,
  };
}

/** Makes the record of a new upload of a build, with some fields changed. */
export function upload(owner: string, number: number, of: Build, fields: Partial<Upload> = {}): Upload {
  return {
    id: uploadIdOf(number, owner),
    imageId: of.id,
    diskimage: of.diskimage,
    provider: 'cloud',
    imageName: 'debian-bookworm',
    state: 'uploading',
    reason: 'the provider lacks it',
    requestedAt: Date.UTC(2026, 0, 2) + number,
    leftovers: false,
    seen: false,
    ...fields,
  };
}

/** Makes a bundle, without a signature, of a statement with this predicate type. */
export function bundle(predicateType: string, more: Readonly<Record<string, unknown>> = {}): string {
  const payload = Buffer.from(JSON.stringify({ predicateType, ...more })).toString('base64');
  return JSON.stringify({ dsseEnvelope: { payload } });
}

export const BUILD_BUNDLE: string = bundle('https://slsa.dev/provenance/v1');

/** Makes the attestation of an upload. */
export function attestation({ id, imageId }: Upload): ImageDocument {
  const text = bundle('https://nodepool-builder.dev/upload/v1', { predicate: { 'upload-id': id } });
  return { kind: 'attestation', imageId, uploadId: id, text };
}
