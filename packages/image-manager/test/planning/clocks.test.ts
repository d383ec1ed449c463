import { deepEqual } from 'node:assert/strict';
import { test } from 'node:test';
import { correctFutureDates } from '../../src/planning/corrections.ts';
import { DAY, debianInCloud, imageId, NOW, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

const AHEAD = { ago: -30 * DAY };
const AT_1970 = { ago: NOW / 1000 };

testSituations({
  'a build after one with a date in the future is the newest, and is uploaded': {
    given: debianInCloud().build(1, 'ready', AHEAD).upload(1, 'cloud', 'ready', AHEAD).build(2, 'ready'),
    steps: ['upload 2 to cloud/debian'],
  },
  'a build after one with a date in the future is kept, and older ones are deleted': {
    given: debianInCloud({ keep: 1 })
      .build(1, 'ready', AHEAD)
      .upload(1, 'cloud', 'ready', AHEAD)
      .build(2, 'ready')
      .upload(2, 'cloud', 'ready'),
    steps: ['delete-build 1', 'delete-upload 101'],
  },
  'a build from 1970 is the newest if its number is the highest': {
    given: debianInCloud({ keep: 1 })
      .build(1, 'ready')
      .upload(1, 'cloud', 'ready')
      .build(2, 'ready', AT_1970)
      .upload(2, 'cloud', 'ready', AT_1970),
    steps: ['delete-build 1', 'delete-upload 101'],
  },
  'a failed build after a build with a date in the future counts': {
    given: new Situation().diskimage('debian').build(1, 'ready', AHEAD).build(2, 'failed', { ago: 1 }),
    steps: [],
    waits: [/the last attempt failed/],
  },
});

test('records with dates in the future are corrected, others are unchanged', () => {
  const given = debianInCloud()
    .build(1, 'ready', AHEAD)
    .build(2, 'ready', { ago: -30 })
    .build(3, 'failed', { endedAt: NOW + DAY * 1000 })
    .upload(1, 'cloud', 'ready', AHEAD)
    .upload(2, 'cloud', 'ready');
  const { builds, uploads } = correctFutureDates(given.state, NOW);
  deepEqual(
    builds.map(({ id, requestedAt, endedAt }) => [id, requestedAt, endedAt]),
    [
      [imageId(1), NOW, NOW],
      [imageId(3), given.builds.get(imageId(3))?.requestedAt, NOW],
    ],
  );
  deepEqual(
    uploads.map(({ id, requestedAt, endedAt }) => [id, requestedAt, endedAt]),
    [[uploadId(101), NOW, NOW]],
  );
});
