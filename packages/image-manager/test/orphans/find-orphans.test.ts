import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProviderImage } from '@nodepool-builder/image-builder';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import type { Build, Upload } from '@nodepool-builder/image-manager';
import {
  compareUploads,
  unrecordedAtBuilders,
  unrecordedInProvider,
} from '../../src/orphans/find-orphans.ts';
import { build, upload } from '../store/records.ts';

const OWNER = 'ownerabc';
const BUILD = build(OWNER, 1, { state: 'ready' });

/** Maps each state to true if a record in it accounts for an image. */
const STATES: Readonly<Record<Build['state'] | Upload['state'], boolean>> = {
  building: true,
  uploading: true,
  ready: true,
  missing: true,
  failed: false,
  deleting: true,
  deleted: false,
};

for (const [state, isRecorded] of Object.entries(STATES)) {
  test(`an image whose record is ${state} is ${isRecorded ? 'not ' : ''}an orphan`, () => {
    const builds = new Map([[BUILD.id, { ...BUILD, state: state as Build['state'] }]]);
    const record = upload(OWNER, 2, BUILD, { state: state as Upload['state'] });
    const uploads = new Map([[record.id, record]]);
    const records = { owner: OWNER, builds, uploads };
    const found = [
      ...unrecordedInProvider({ provider: 'cloud', images: [image('x', record.id)] }, records),
      ...unrecordedAtBuilders([BUILD.id], records),
    ];
    assert.deepEqual(
      found.map(({ location, isOurs }) => [location, isOurs]),
      isRecorded
        ? []
        : [
            ['provider', true],
            ['builder', true],
          ],
    );
  });
}

test('an adopted image that comes back after its deletion is ours, and an unknown Zuul image is not', () => {
  const [known, unknown] = ['a', 'b'].map((digit) =>
    importedImageId({ image: 'debian', uuid: digit.repeat(32), endTime: 0 }),
  );
  const record: Build = { ...BUILD, id: known ?? '', state: 'deleted' };
  const found = unrecordedAtBuilders([record.id, unknown ?? ''], {
    owner: OWNER,
    builds: new Map([[record.id, record]]),
    uploads: new Map(),
  });
  assert.deepEqual(
    found.map(({ isOurs }) => isOurs),
    [true, false],
  );
});

test('ready uploads are compared with their provider’s listing', () => {
  const ready = (number: number, fields: object) =>
    upload(OWNER, number, BUILD, { state: 'ready', endedAt: 1000, externalId: `x${number}`, ...fields });
  const [listed, known, gone, hidden, young, elsewhere, deleting] = [
    ready(1, {}),
    ready(2, { seen: true }),
    ready(3, { seen: true }),
    ready(4, {}),
    ready(5, { endedAt: 5000 }),
    ready(6, { seen: true, provider: 'away' }),
    ready(7, { seen: true, state: 'deleting' }),
  ];
  const images = [image('x1', listed?.id), image('x2', known?.id)];
  const all = [listed, known, gone, hidden, young, elsewhere, deleting].filter((each) => each !== undefined);
  const found = compareUploads(all, { provider: 'cloud', images }, 5000);
  assert.deepEqual(found, { appeared: [listed], vanished: [gone], invisible: [hidden] });
});

test('a missing upload counts as listed again only if an image carries its id', () => {
  const missing = (number: number, externalId: string) =>
    upload(OWNER, number, BUILD, { state: 'missing', endedAt: 1000, externalId, seen: true });
  const [back, without, replaced, gone] = [
    missing(1, 'x1'),
    missing(2, 'x2'),
    missing(3, 'x3'),
    missing(4, 'x4'),
  ];
  const images = [image('x1', back?.id), image('x2', undefined), image('x3', '0000000009-ownerabc')];
  const all = [back, without, replaced, gone].filter((each) => each !== undefined);
  const found = compareUploads(all, { provider: 'cloud', images }, 5000);
  assert.deepEqual(found, { appeared: [back, without], vanished: [], invisible: [] });
});

function image(externalId: string, uploadId: string | undefined): ProviderImage {
  const fields = { imageId: BUILD.id, imageName: 'debian', format: 'qcow2', size: 1 } as const;
  return { externalId, ...(uploadId !== undefined && { uploadId }), uploadedAt: new Date(0), ...fields };
}
