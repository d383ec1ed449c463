import { imageIdOf, uploadIdOf } from '../../src/ownership.ts';
import type { Build, Upload } from '../../src/records.ts';

/** A build that has just been asked for, unless the fields say something else. */
export function build(owner: string, number: number, fields: Partial<Build> = {}): Build {
  return {
    id: imageIdOf('debian', number, owner),
    diskimage: 'debian',
    state: 'building',
    configuration: 'c0ffee',
    reason: 'there is none',
    requestedAt: Date.UTC(2026, 0, 1) + number,
    withdrawn: false,
    ...fields,
  };
}

/** An upload of a build. */
export function upload(owner: string, number: number, of: Build, fields: Partial<Upload> = {}): Upload {
  return {
    id: uploadIdOf(number, owner),
    imageId: of.id,
    diskimage: of.diskimage,
    provider: 'cloud',
    imageName: 'debian-bookworm',
    state: 'uploading',
    reason: 'the provider has none',
    requestedAt: Date.UTC(2026, 0, 2) + number,
    leftovers: false,
    seen: false,
    ...fields,
  };
}
