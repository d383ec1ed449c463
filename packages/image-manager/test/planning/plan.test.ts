import { deepEqual, equal, partialDeepStrictEqual } from 'node:assert/strict';
import { test } from 'node:test';
import { plan } from '@nodepool-builder/image-manager';
import { DAY, debianInCloud, HOUR, imageId, MINUTE, NOW, Situation } from './situation.ts';

const debian = (settings = {}) => new Situation().diskimage('debian', settings);

for (const [sentence, given, seconds] of [
  ['only after an event if no build depends on the time', debian().build(1, 'ready'), undefined],
  [
    'when the newest build is as old as rebuild-age',
    debian({ rebuildAge: DAY }).build(1, 'ready', { ago: HOUR }),
    23 * HOUR,
  ],
  [
    'at the next cron time',
    debian({ rebuildCron: '30 12 * * *' }).build(1, 'ready', { ago: HOUR }),
    30 * MINUTE,
  ],
  [
    'at the cron time or at rebuild-age, whichever is earlier',
    debian({ rebuildCron: '30 12 * * *', rebuildAge: 70 * MINUTE }).build(1, 'ready', { ago: HOUR }),
    10 * MINUTE,
  ],
  [
    'only after an event if the disk image is paused',
    debian({ rebuildAge: DAY, pause: true }).build(1, 'ready', { ago: HOUR }),
    undefined,
  ],
  ['at the end of absence-timeout', debianInCloud().build(1, 'ready').absent(1, MINUTE), 29 * MINUTE],
  ['when a build is retried', debian().build(1, 'failed', { ago: 20 }), 40],
  [
    'when an upload is retried',
    debianInCloud().build(1, 'ready').upload(1, 'cloud', 'failed', { ago: 20 }),
    40,
  ],
  ['when a deletion is retried', debian().build(1, 'deleting').build(2, 'ready').retryIn(imageId(1), 7), 7],
] as const) {
  test(`the next plan is made ${sentence}`, () => {
    equal(given.plan().nextAt, seconds === undefined ? undefined : NOW + seconds * 1000);
  });
}

test('a plan lists later builds with their time and reason', () => {
  const given = debian({ rebuildAge: DAY }).build(1, 'ready', { ago: HOUR });
  deepEqual(given.plan().laterBuilds, [
    {
      diskimage: 'debian',
      at: NOW + 23 * HOUR * 1000,
      reason: `${imageId(1)} reaches rebuild-age, 24 hours`,
    },
  ]);
  deepEqual(given.later(23 * HOUR).plan().laterBuilds, [], 'now it is a step');
});

test('the reason of a build by rebuild-cron is the same before and after that time', () => {
  const given = debian({ rebuildCron: '30 12 * * *' }).build(1, 'ready', { ago: HOUR });
  const reason = `the time of rebuild-cron "30 12 * * *" after ${imageId(1)}`;
  deepEqual(given.plan().laterBuilds, [{ diskimage: 'debian', at: NOW + 30 * MINUTE * 1000, reason }]);
  partialDeepStrictEqual(given.later(31 * MINUTE).plan().steps, [{ kind: 'build', reason }]);
});

test('a plan says who cancelled the last build, and when the next one is due', () => {
  const given = new Situation()
    .diskimage('debian', { rebuildAge: DAY })
    .build(1, 'failed', { ago: HOUR, cancelledBy: 'root@here' });
  const reason =
    'the last build was cancelled by root@here; ' +
    `the cancelled build, ${imageId(1)}, reaches rebuild-age, 24 hours`;
  deepEqual(given.plan().laterBuilds, [{ diskimage: 'debian', at: NOW + 23 * HOUR * 1000, reason }]);
});

test('a build that a plan lists for later becomes a step at its time', () => {
  const given = debian({ rebuildAge: DAY }).build(1, 'ready', { ago: HOUR });
  deepEqual(given.later(23 * HOUR - 1).plan().steps, []);
  equal(given.later(23 * HOUR).plan().steps[0]?.kind, 'build');
});

test('planning takes linear time', () => {
  const small = readsOf(siteOf(20, 5));
  equal(small > 0, true);
  equal(readsOf(siteOf(200, 5)), 10 * small);
});

/** Counts the reads of record states in a planning pass: scanning all records for each record would be quadratic. */
function readsOf(given: Situation): number {
  let reads = 0;
  const counting = <R extends { readonly state: string }>(record: R): R => {
    const { state } = record;
    const get = (): string => {
      reads += 1;
      return state;
    };
    return Object.defineProperty(record, 'state', { get });
  };
  const { configuration, observation } = given;
  const builds = new Map([...given.builds].map(([id, build]) => [id, counting(build)]));
  const uploads = new Map([...given.uploads].map(([id, upload]) => [id, counting(upload)]));
  plan(configuration, { builds, uploads, pauses: new Map() }, observation);
  return reads;
}

/** Makes a site with five providers that have every build of every disk image. */
function siteOf(diskimages: number, builds: number): Situation {
  const names = Array.from({ length: diskimages }, (_, index) => `image-${index}`);
  const providers = ['a', 'b', 'c', 'd', 'e'];
  const given = new Situation();
  for (const name of names) given.diskimage(name, { rebuildAge: 1000 * DAY, rebuildCron: '0 2 1 * *' });
  for (const provider of providers) given.provider(provider, names);
  let number = 0;
  for (const diskimage of names) {
    for (let build = 1; build <= builds; build++) {
      given.build(build, 'ready', { diskimage });
      for (const provider of providers)
        given.upload(build, provider, 'ready', { diskimage, number: ++number });
    }
  }
  return given;
}
