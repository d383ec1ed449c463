import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { DAY, debianInCloud, HOUR, imageId, MINUTE, NOW, Situation } from './situation.ts';
import { testSituations } from './situation-table.ts';

const debian = (settings = {}) => new Situation().diskimage('debian', settings);

testSituations({
  'a disk image without a build is built': { given: debian(), steps: ['build debian'] },
  'a disk image with a ready build is not built again': { given: debian().build(1, 'ready'), steps: [] },
  'a build whose file is gone is replaced by a new one': {
    given: debian().build(1, 'deleted'),
    steps: ['build debian'],
  },
  'no other build of a disk image is planned while one runs': {
    given: debian().build(1, 'building').inProgress(imageId(1)),
    steps: [],
  },
  'a build on record that is not running is resumed': {
    given: debian().build(1, 'building'),
    steps: ['resume-build 1'],
  },
  'a build is resumed even if the configuration no longer has its disk image': {
    given: new Situation().build(1, 'building'),
    steps: ['resume-build 1'],
  },
  'a build that could not be resumed is resumed later': {
    given: debian().build(1, 'building').retryIn(imageId(1), 5),
    steps: [],
    waits: [/^build debian-0000000001-ownerabc: .*\(5 s\)$/],
  },

  'a build younger than rebuild-age is not due': {
    given: debian({ rebuildAge: DAY }).build(1, 'ready', { ago: DAY - 1 }),
    steps: [],
  },
  'a build as old as rebuild-age is due': {
    given: debian({ rebuildAge: DAY }).build(1, 'ready', { ago: DAY }),
    steps: ['build debian'],
  },
  'a failed build does not reset the age that rebuild-age counts': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: DAY })
      .build(2, 'failed', { ago: 2 * HOUR }),
    steps: ['build debian'],
  },
  'rolling back a young build does not make a build due': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'deleting', { ago: HOUR, withdrawn: true })
      .inProgress(imageId(2)),
    steps: [],
  },
  'deleting a young build does not make a build due while an older one is ready': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'deleted', { ago: HOUR }),
    steps: [],
  },

  'no build is due without a cron time since the newest build': {
    given: debian({ rebuildCron: '0 11 * * *' }).build(1, 'ready', { ago: 59 * MINUTE }),
    steps: [],
  },
  'a build is due at a cron time, in local time': {
    given: debian({ rebuildCron: '0 11 * * *' }).build(1, 'ready', { ago: 61 * MINUTE }),
    steps: ['build debian'],
  },
  'a build is due by rebuild-cron or rebuild-age, whichever is earlier': {
    given: debian({ rebuildCron: '0 11 * * *', rebuildAge: 30 * MINUTE }).build(1, 'ready', {
      ago: 30 * MINUTE,
    }),
    steps: ['build debian'],
  },
  'a cron expression that never matches makes no build due': {
    given: debian({ rebuildCron: '0 0 30 2 *' }).build(1, 'ready', { ago: 1000 * DAY }),
    steps: [],
  },

  'a changed configuration makes a build due': {
    given: debian().build(1, 'ready', { configuration: 'former' }),
    steps: ['build debian'],
  },
  'a withdrawn build’s configuration counts as built after a rollback': {
    given: debian()
      .build(1, 'ready', { configuration: 'former' })
      .build(2, 'deleting', { withdrawn: true })
      .inProgress(imageId(2)),
    steps: [],
  },
  'a failed build of a new configuration is retried after a pause': {
    given: debian().build(1, 'ready', { configuration: 'former' }).build(2, 'failed', { ago: 59 }),
    steps: [],
    waits: [/the last attempt failed \(broken\); .* its configuration has changed.*\(1 s\)/],
  },
  'a build with a new configuration does not wait for the old one’s pause': {
    given: debian().build(1, 'failed', { ago: 1, configuration: 'former' }),
    steps: ['build debian'],
  },

  'a cancelled build is not tried again at once': {
    given: debian().build(1, 'failed', { ago: DAY, cancelledBy: 'root@here' }),
    steps: [],
    waits: [/^diskimage debian: the last build was cancelled by root@here; the next one is built on request/],
  },
  'the build after a cancelled one is due by its age': {
    given: debian({ rebuildAge: DAY }).build(1, 'failed', { ago: DAY, cancelledBy: 'root@here' }),
    steps: ['build debian'],
  },
  'a rebuild that was due by age before a cancelled build is no longer due': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'failed', { ago: DAY - 1, cancelledBy: 'root@here' }),
    steps: [],
  },
  'a cancelled build does not put off a rebuild that becomes due by age later': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: DAY })
      .build(2, 'failed', { ago: HOUR, cancelledBy: 'root@here' }),
    steps: ['build debian'],
  },
  'the next time of rebuild-cron counts after a cancelled build': {
    given: debian({ rebuildCron: '0 11 * * *' })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'failed', { ago: 61 * MINUTE, cancelledBy: 'root@here' }),
    steps: ['build debian'],
  },
  'a rebuild-cron time before a cancelled build is no longer due': {
    given: debian({ rebuildCron: '0 11 * * *' })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'failed', { ago: 59 * MINUTE, cancelledBy: 'root@here' }),
    steps: [],
  },
  'a requested build overrides a cancellation': {
    given: debian().build(1, 'failed', { ago: 1, cancelledBy: 'root@here' }).requested('debian'),
    steps: ['build debian'],
  },
  'a changed configuration overrides a cancellation': {
    given: debian().build(1, 'failed', { ago: 1, cancelledBy: 'root@here', configuration: 'former' }),
    steps: ['build debian'],
  },
  'a build that fails after a cancelled one is retried, and the cancelled one does not lengthen its pause': {
    given: debian().build(1, 'failed', { ago: 99, cancelledBy: 'root@here' }).build(2, 'failed', { ago: 60 }),
    steps: ['build debian'],
  },

  'a failed build is retried after the first pause': {
    given: debian().build(1, 'failed', { ago: 60 }),
    steps: ['build debian'],
  },
  'each failed build doubles the pause, which starts at the end of the last failure': {
    given: debian()
      .build(1, 'failed')
      .build(2, 'failed')
      .build(3, 'failed', { ago: HOUR, endedAt: NOW - 100_000 }),
    steps: [],
    waits: [/the last 3 attempts failed.*\(140 s\)/],
  },
  'the pause after failed builds has a maximum': {
    given: Array.from({ length: 9 }).reduce<Situation>(
      (given, _, index) => given.build(index + 1, 'failed', { ago: 10 - index }),
      debian(),
    ),
    steps: [],
    waits: [/the last 9 attempts failed.*\(3598 s\)/],
  },
  'a successful build ends a series of failures': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'failed', { ago: 2 * DAY })
      .build(2, 'ready', { ago: DAY })
      .build(3, 'failed', { ago: 60 }),
    steps: ['build debian', 'prune builds 1; uploads '],
  },

  'a disk image that no builder offers waits for a builder': {
    given: debian().withoutBuilders(),
    steps: [],
    waits: [/^diskimage debian: no builder offers image-build:debian;/],
  },
  'a disk image that is not due does not wait for a builder': {
    given: debian().build(1, 'ready').withoutBuilders(),
    steps: [],
  },
  'a paused disk image is not built': {
    given: debian({ pause: true }),
    steps: [],
    waits: [/^diskimage debian: it is paused by the configuration; a build is due: its first ready build/],
  },
  'a disk image that an operator paused is not built, whatever the configuration says': {
    given: debian({ pause: false }).pauseRecord(true),
    steps: [],
    waits: [
      /^diskimage debian: it is paused by root@host since 20.*Z; a build is due: its first ready build/,
    ],
  },
  'a disk image that an operator paused waits even if no build is due': {
    given: debian({ rebuildAge: DAY }).build(1, 'ready', { ago: HOUR }).pauseRecord(true),
    steps: [],
    waits: [/^diskimage debian: it is paused by root@host since 20.*Z$/],
  },
  'a disk image that an operator unpaused is built, whatever the configuration says': {
    given: debian({ pause: true }).pauseRecord(false),
    steps: ['build debian'],
  },

  'a requested build is planned at once': {
    given: debian().build(1, 'ready').requested('debian'),
    steps: ['build debian'],
  },
  'a requested build is planned despite the pause after a failure': {
    given: debian().build(1, 'failed', { ago: 1 }).requested('debian'),
    steps: ['build debian'],
  },
  'a requested build that failed is built again after a pause': {
    given: debian().build(1, 'ready').build(2, 'failed', { ago: DAY }),
    steps: ['build debian'],
  },
  'a requested build that was cancelled is not built again': {
    given: debian().build(1, 'ready').build(2, 'failed', { ago: DAY, cancelledBy: 'root@here' }),
    steps: [],
    waits: [/the last build was cancelled by root@here/],
  },
  'a requested build waits until its disk image is no longer paused': {
    given: debian().build(1, 'ready').requested('debian').pauseRecord(true),
    steps: [],
    waits: [/it is paused by root@host since .*; a build is due: it was requested/],
  },
  'a requested build that no builder offers waits for a builder': {
    given: debian().build(1, 'ready').requested('debian').withoutBuilders(),
    steps: [],
    waits: [/no builder offers image-build:debian; .*it was requested/],
  },
  'a requested build waits for a running build': {
    given: debian().build(1, 'building').inProgress(imageId(1)).requested('debian'),
    steps: [],
    waits: [/: a build was requested; it starts when debian-0000000001-ownerabc has ended/],
  },
  'a requested build waits for a running build, and until its disk image is no longer paused': {
    given: debian().build(1, 'building').inProgress(imageId(1)).requested('debian').pauseRecord(true),
    steps: [],
    waits: [/: it is paused by root@host since .*; a build was requested; it starts when debian-/],
  },

  'an image that a provider needs is built again after a long absence': {
    given: debianInCloud()
      .build(1, 'ready')
      .absent(1, 30 * MINUTE),
    steps: ['build debian'],
    waits: [/no builder offers image-upload:debian-0000000001-ownerabc/],
  },
  'a short absence of an image makes no build due': {
    given: debianInCloud()
      .build(1, 'ready')
      .absent(1, 29 * MINUTE),
    steps: [],
    waits: [/no builder offers image-upload/],
  },
  'an absent image that every provider has is not built again': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'ready').absent(1, DAY),
    steps: [],
  },
  'an absent image is not built again for a paused provider': {
    given: debian().provider('cloud', ['debian'], { pause: true }).build(1, 'ready').absent(1, DAY),
    steps: [],
    waits: [/provider cloud is paused/],
  },
});

test('the reason for a rebuild names the build and the age limit', () => {
  const [step] = debian({ rebuildAge: DAY })
    .build(7, 'ready', { ago: 25 * HOUR })
    .plan().steps;
  equal(step?.reason, 'debian-0000000007-ownerabc has reached rebuild-age, 24 hours');
});
