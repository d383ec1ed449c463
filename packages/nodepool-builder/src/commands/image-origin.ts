import { styleText } from 'node:util';
import { originOfBuild, readKeys } from '../attestation/origin/origin.ts';
import type { BuildOrigin, Proof } from '../attestation/origin/origin-record.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { withStore } from '../site/state-view.ts';
import { CommandError } from '../terms/command-error.ts';
import { type Column, printRecords } from './table.ts';

/** `image-status IMAGE-ID`: shows the origin of an image, and the proof states of its uploads. */
export async function showOrigin(configuration: Configuration, imageId: string, json = false): Promise<void> {
  const origin = await withStore(configuration, async (store) => {
    const state = await store.read();
    if (!state.builds.has(imageId)) {
      throw new CommandError(`image ${imageId} does not exist; dib-image-list lists all images`, 'not-found');
    }
    return await originOfBuild({ state, store, ...(await readKeys(configuration)) }, imageId);
  });
  if (json) console.log(JSON.stringify(origin, null, 2));
  else await printOrigin(origin);
}

const MATERIAL_COLUMNS: readonly Column[] = [
  { heading: 'MATERIAL', key: 'name', long: 'words' },
  { heading: 'ADDRESS', key: 'uri', long: 'id' },
  { heading: 'DIGESTS', long: 'id' },
  { heading: 'FACTS', long: 'words', sparse: true },
];

const PACKAGE_COLUMNS: readonly Column[] = [
  { heading: 'PACKAGE', key: 'name' },
  { heading: 'ARCH', key: 'architecture' },
  { heading: 'BEFORE' },
  { heading: 'AFTER' },
];

const UPLOAD_COLUMNS: readonly Column[] = [
  { heading: 'UPLOAD-ID' },
  { heading: 'PROVIDER' },
  { heading: 'PROOF', key: 'state' },
  { heading: 'KEY' },
  { heading: 'REASON', long: 'words' },
];

async function printOrigin(origin: BuildOrigin): Promise<void> {
  const { proof, packages, materials, uploads } = origin;
  console.log(`${styleText('bold', origin['image-id'])}: ${proof.state}, ${proof.reason}${keyText(proof)}`);
  if (materials.length > 0) {
    console.log('');
    await printRecords(materials, MATERIAL_COLUMNS);
  }
  const { added, removed, changed, count, reason } = packages;
  const before = packages['compared-with'];
  const known = count === null ? 'Packages' : `${count} packages`;
  console.log(
    before === null
      ? `\n${known}: ${reason}`
      : `\n${known}; since ${before}: ${added.length} added, ${removed.length} removed, ${changed.length} changed`,
  );
  const changes = [
    ...added.map(({ version, ...one }) => ({ ...one, before: null, after: version })),
    ...removed.map(({ version, ...one }) => ({ ...one, before: version, after: null })),
    ...changed,
  ];
  if (changes.length > 0) await printRecords(changes, PACKAGE_COLUMNS);
  if (uploads.length === 0) return;
  console.log('');
  await printRecords(
    uploads.map((one) => ({
      'upload-id': one['upload-id'],
      provider: one.provider,
      state: one.proof.state,
      key: shortKey(one.proof['key-id']),
      reason: one.proof.reason,
    })),
    UPLOAD_COLUMNS,
  );
  const more = origin['more-uploads'];
  if (more > 0) console.log(`${more} older uploads are not shown`);
}

function keyText({ 'key-id': keyId, 'key-file': file }: Proof): string {
  return keyId === null ? '' : `; key ${shortKey(keyId)} in ${file}`;
}

/** Prefix of a key's id that is long enough to distinguish the keys of a site. */
function shortKey(keyId: string | null): string | null {
  return keyId === null ? null : keyId.slice(0, 12);
}
