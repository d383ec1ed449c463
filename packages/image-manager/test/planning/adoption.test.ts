import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import type { Build } from '@nodepool-builder/image-manager';
import { buildsToAdopt } from '../../src/planning/corrections.ts';
import { imageId, NOW, Situation } from './situation.ts';

const END = Date.UTC(2026, 1, 3);

const { configuration } = new Situation()
  .diskimage('noble', { isImported: true, digest: 'noble today' })
  .diskimage('noble-arm', { isImported: true })
  .diskimage('debian');

function idOf(image: string, digit: string, endTime: number = END): string {
  return importedImageId({ image, uuid: digit.repeat(32), endTime });
}

function adopt(offered: readonly string[], known: readonly Build[] = [], now = NOW): readonly Build[] {
  return buildsToAdopt(configuration, new Map(known.map((build) => [build.id, build])), offered, now);
}

test('an imported build is as old as the build in Zuul', () => {
  assert.deepEqual(adopt([idOf('noble', 'a')]), [
    {
      id: idOf('noble', 'a'),
      diskimage: 'noble',
      state: 'ready',
      configuration: 'noble today',
      reason: 'Zuul built it',
      requestedAt: END,
      endedAt: END,
      withdrawn: false,
    },
  ]);
});

test('an imported build’s date in the future counts as now', () => {
  const [build] = adopt([idOf('noble', 'a')], [], END - 1000);
  assert.deepEqual([build?.requestedAt, build?.endedAt], [END - 1000, END - 1000]);
});

test('each imported build belongs to the disk image in its id', () => {
  const adopted = adopt([idOf('noble-arm', 'a'), idOf('noble', 'b', END + 1000)]);
  assert.deepEqual(
    adopted.map(({ diskimage, requestedAt }) => [diskimage, requestedAt]),
    [
      ['noble-arm', END],
      ['noble', END + 1000],
    ],
  );
});

test('images that are not Zuul builds of a configured disk image are not adopted', () => {
  assert.deepEqual(adopt([imageId(1, 'noble'), 'noble-1', idOf('debian', 'a'), idOf('jammy', 'a')]), []);
});

for (const state of ['ready', 'deleting', 'deleted'] as const) {
  test(`an imported build on record as ${state} is not adopted again`, () => {
    const [build = assert.fail('none was adopted')] = adopt([idOf('noble', 'a')]);
    assert.deepEqual(adopt([build.id], [{ ...build, state }]), []);
  });
}
