import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { DAY, debianInCloud, HOUR, imageId, MINUTE, NOW, Situation } from './situation.ts';
import { testSituations } from './situation-table.ts';

const debian = (settings = {}) => new Situation().diskimage('debian', settings);

testSituations({
  'a disk image without a build is built': { given: debian(), steps: ['build debian'] },
  'a ready build is enough': { given: debian().build(1, 'ready'), steps: [] },
  'a build whose file is gone is replaced': { given: debian().build(1, 'deleted'), steps: ['build debian'] },
  'a build that is going on is waited for': {
    given: debian().build(1, 'building').underWay(imageId(1)),
    steps: [],
  },
  'a build that nobody follows is resumed': {
    given: debian().build(1, 'building'),
    steps: ['resume-build 1'],
  },
  'a build is followed though its disk image is gone from the configuration': {
    given: new Situation().build(1, 'building'),
    steps: ['resume-build 1'],
  },
  'following a build is tried again later': {
    given: debian().build(1, 'building').retryIn(imageId(1), 5),
    steps: [],
    waits: [/^build debian-0000000001-ownerabc: .*\(5 s\)$/],
  },

  'the newest is younger than rebuild-age': {
    given: debian({ rebuildAge: DAY }).build(1, 'ready', { ago: DAY - 1 }),
    steps: [],
  },
  'the newest is as old as rebuild-age': {
    given: debian({ rebuildAge: DAY }).build(1, 'ready', { ago: DAY }),
    steps: ['build debian'],
  },
  'a failed build makes nothing younger': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: DAY })
      .build(2, 'failed', { ago: 2 * HOUR }),
    steps: ['build debian'],
  },
  'a young one that was rolled back is no reason to build': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'deleting', { ago: HOUR, withdrawn: true })
      .underWay(imageId(2)),
    steps: [],
  },
  'a young one that was deleted is no reason to build while an older one is there': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'deleted', { ago: HOUR }),
    steps: [],
  },

  'no cron time since the newest': {
    given: debian({ rebuildCron: '0 11 * * *' }).build(1, 'ready', { ago: 59 * MINUTE }),
    steps: [],
  },
  'a cron time, in local time, since the newest': {
    given: debian({ rebuildCron: '0 11 * * *' }).build(1, 'ready', { ago: 61 * MINUTE }),
    steps: ['build debian'],
  },
  'age counts beside cron if it is given': {
    given: debian({ rebuildCron: '0 11 * * *', rebuildAge: 30 * MINUTE }).build(1, 'ready', {
      ago: 30 * MINUTE,
    }),
    steps: ['build debian'],
  },
  'a cron expression that never comes': {
    given: debian({ rebuildCron: '0 0 30 2 *' }).build(1, 'ready', { ago: 1000 * DAY }),
    steps: [],
  },
  'what is no cron expression is said, and age counts': {
    given: debian({ rebuildCron: 'at night', rebuildAge: DAY }).build(1, 'ready', { ago: DAY }),
    steps: ['build debian'],
    waits: [/^diskimage debian: rebuild-cron "at night" is no cron expression: .* Correct it\.$/],
  },

  'another configuration is a reason to build': {
    given: debian().build(1, 'ready', { configuration: 'former' }),
    steps: ['build debian'],
  },
  'the configuration of a build that was rolled back was built': {
    given: debian()
      .build(1, 'ready', { configuration: 'former' })
      .build(2, 'deleting', { withdrawn: true })
      .underWay(imageId(2)),
    steps: [],
  },
  'a new configuration whose build failed is built again after a pause': {
    given: debian().build(1, 'ready', { configuration: 'former' }).build(2, 'failed', { ago: 59 }),
    steps: [],
    waits: [/the last try failed; .* its configuration has changed.*\(1 s\)/],
  },
  'a new configuration does not wait for the back-off of the former': {
    given: debian().build(1, 'failed', { ago: 1, configuration: 'former' }),
    steps: ['build debian'],
  },

  'the first pause is over': { given: debian().build(1, 'failed', { ago: 60 }), steps: ['build debian'] },
  'pauses double, counted from the end of the last failure': {
    given: debian()
      .build(1, 'failed')
      .build(2, 'failed')
      .build(3, 'failed', { ago: HOUR, endedAt: NOW - 100_000 }),
    steps: [],
    waits: [/the last 3 tries failed.*\(140 s\)/],
  },
  'pauses have a limit': {
    given: Array.from({ length: 9 }).reduce<Situation>(
      (given, _, index) => given.build(index + 1, 'failed', { ago: 10 - index }),
      debian(),
    ),
    steps: [],
    waits: [/the last 9 tries failed.*\(3598 s\)/],
  },
  'a success ends a row of failures': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'failed', { ago: 2 * DAY })
      .build(2, 'ready', { ago: DAY })
      .build(3, 'failed', { ago: 60 }),
    steps: ['build debian', 'prune builds 1; uploads '],
  },

  'no builder makes it': {
    given: debian().withoutBuilders(),
    steps: [],
    waits: [/^diskimage debian: no builder offers image-build:debian;/],
  },
  'nobody misses a builder of what is not due': {
    given: debian().build(1, 'ready').withoutBuilders(),
    steps: [],
  },
  'a paused disk image is not built': {
    given: debian({ pause: true }),
    steps: [],
    waits: [/^diskimage debian: it is paused;/],
  },

  'what somebody asks for is built': {
    given: debian().build(1, 'ready').demanded('debian'),
    steps: ['build debian'],
  },
  'what somebody asks for is built in spite of pause and back-off': {
    given: debian({ pause: true }).build(1, 'failed', { ago: 1 }).demanded('debian'),
    steps: ['build debian'],
  },
  'nobody can build what somebody asks for': {
    given: debian().build(1, 'ready').demanded('debian').withoutBuilders(),
    steps: [],
    waits: [/no builder offers image-build:debian; .*somebody asked for it/],
  },
  'one build at a time, whoever asks': {
    given: debian().build(1, 'building').underWay(imageId(1)).demanded('debian'),
    steps: [],
    waits: [/it begins when debian-0000000001-ownerabc has ended/],
  },

  'an image that is absent for long, and that a provider needs, is built anew': {
    given: debianInCloud()
      .build(1, 'ready')
      .absent(1, 30 * MINUTE),
    steps: ['build debian'],
    waits: [/no builder offers image-upload:debian-0000000001-ownerabc/],
  },
  'an image that is absent for a moment is waited for': {
    given: debianInCloud()
      .build(1, 'ready')
      .absent(1, 29 * MINUTE),
    steps: [],
    waits: [/no builder offers image-upload/],
  },
  'an absent image that every provider has is not missed': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'ready').absent(1, DAY),
    steps: [],
  },
  'an absent image is not missed by a provider that is paused': {
    given: debian().provider('cloud', ['debian'], { pause: true }).build(1, 'ready').absent(1, DAY),
    steps: [],
    waits: [/provider cloud is paused/],
  },
});

test('the reason tells age and limit', () => {
  const [step] = debian({ rebuildAge: DAY })
    .build(7, 'ready', { ago: 25 * HOUR })
    .plan().steps;
  equal(step?.reason, 'the newest, debian-0000000007-ownerabc, is 25 hours old; rebuild-age is 24 hours');
});
