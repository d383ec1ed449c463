import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { plan } from '@nodepool-builder/image-manager';
import { DAY, debianInCloud, HOUR, imageId, MINUTE, NOW, Situation } from './situation.ts';

const debian = (settings = {}) => new Situation().diskimage('debian', settings);

for (const [sentence, given, seconds] of [
  ['never, where only events matter', debian().build(1, 'ready'), undefined],
  [
    'when the newest is as old as rebuild-age',
    debian({ rebuildAge: DAY }).build(1, 'ready', { ago: HOUR }),
    23 * HOUR,
  ],
  [
    'at the next cron time',
    debian({ rebuildCron: '30 12 * * *' }).build(1, 'ready', { ago: HOUR }),
    30 * MINUTE,
  ],
  [
    'at the earlier of both',
    debian({ rebuildCron: '30 12 * * *', rebuildAge: 70 * MINUTE }).build(1, 'ready', { ago: HOUR }),
    10 * MINUTE,
  ],
  [
    'not when a paused one would be due',
    debian({ rebuildAge: DAY, pause: true }).build(1, 'ready', { ago: HOUR }),
    undefined,
  ],
  ['when an absent image is given up', debianInCloud().build(1, 'ready').absent(1, MINUTE), 29 * MINUTE],
  ['when a build is tried again', debian().build(1, 'failed', { ago: 20 }), 40],
  [
    'when an upload is tried again',
    debianInCloud().build(1, 'ready').upload(1, 'cloud', 'failed', { ago: 20 }),
    40,
  ],
  [
    'when a deletion is tried again',
    debian().build(1, 'deleting').build(2, 'ready').retryIn(imageId(1), 7),
    7,
  ],
] as const) {
  test(`the next plan: ${sentence}`, () => {
    equal(given.plan().nextAt, seconds === undefined ? undefined : NOW + seconds * 1000);
  });
}

test('a plan says which builds become due, when, and why', () => {
  const given = debian({ rebuildAge: DAY }).build(1, 'ready', { ago: HOUR });
  deepEqual(given.plan().laterBuilds, [
    {
      diskimage: 'debian',
      at: NOW + 23 * HOUR * 1000,
      reason: `the newest, ${imageId(1)}, is 60 minutes old; rebuild-age is 24 hours`,
    },
  ]);
  deepEqual(given.later(23 * HOUR).plan().laterBuilds, [], 'it is a step then');
});

test('at the time that was told it goes on', () => {
  const given = debian({ rebuildAge: DAY }).build(1, 'ready', { ago: HOUR });
  deepEqual(given.later(23 * HOUR - 1).plan().steps, []);
  equal(given.later(23 * HOUR).plan().steps[0]?.act, 'build');
});

test('a site ten times as large is ten times the work, not more', () => {
  const small = readsOf(siteOf(20, 5));
  equal(small > 0, true);
  equal(readsOf(siteOf(200, 5)), 10 * small);
});

/** How often a planning pass looks at the state of a record: a scan of all for each would be quadratic. */
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
  const { configuration, world } = given;
  const builds = new Map([...given.builds].map(([id, build]) => [id, counting(build)]));
  const uploads = new Map([...given.uploads].map(([id, upload]) => [id, counting(upload)]));
  plan(configuration, { builds, uploads }, world);
  return reads;
}

/** Five providers that have every build of every disk image. */
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
