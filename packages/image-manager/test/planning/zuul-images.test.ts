import { DAY, debianInCloud, HOUR, MINUTE, type Situation } from './situation.ts';
import { testSituations } from './situation-table.ts';

const debian = (): Situation => debianInCloud({ isImported: true });

const NEXT = /^diskimage debian: builders import the next build of Zuul on their own$/;

testSituations({
  'a disk image that Zuul builds is not built when no build is ready': {
    given: debian(),
    steps: [],
    waits: [/^diskimage debian: it has no ready build; builders import the next build of Zuul/],
  },
  'a disk image that Zuul builds is not built after the deletion of its only build': {
    given: debian().build(1, 'deleted'),
    steps: [],
    waits: [/it has no ready build/],
  },
  'a disk image that Zuul builds is not built for its age, cron time or configuration': {
    given: debianInCloud({ isImported: true, rebuildAge: DAY, rebuildCron: '* * * * *' })
      .build(1, 'ready', { ago: 100 * DAY, configuration: 'former' })
      .upload(1, 'cloud', 'ready'),
    steps: [],
    waits: [NEXT],
  },
  'the plan says that no builder imports a disk image that Zuul builds': {
    given: debian().withoutBuilders(),
    steps: [],
    waits: [/^diskimage debian: no builder offers image-build:debian, so that none imports the builds/],
  },
  'a paused disk image that Zuul builds waits for nothing': {
    given: debianInCloud({ isImported: true, pause: true }),
    steps: [],
  },
  'a disk image that Zuul builds is built on request': {
    given: debian().requested('debian'),
    steps: ['build debian'],
  },
  'a disk image that Zuul builds is built after a long absence if a provider needs it': {
    given: debian()
      .build(1, 'ready')
      .absent(1, 30 * MINUTE),
    steps: ['build debian'],
    waits: [/no builder offers image-upload/],
  },
  'a disk image that Zuul builds is uploaded like any other': {
    given: debian().build(1, 'ready'),
    steps: ['upload 1 to cloud/debian'],
    waits: [NEXT],
  },
  'a Zuul build that ended earlier but was imported later counts as older': {
    given: debian()
      .build(5, 'ready', { ago: HOUR })
      .build(4, 'ready', { ago: 2 * HOUR })
      .upload(5, 'cloud', 'ready')
      .build(9, 'ready', { ago: 3 * HOUR, id: `debian-9-${'f'.repeat(32)}` }),
    steps: ['delete-build 9'],
    waits: [NEXT],
  },
  'a withdrawn Zuul build stays on record, and one deleted for its age does not': {
    given: debian()
      .build(1, 'deleted')
      .build(2, 'deleted', { withdrawn: true })
      .build(3, 'ready')
      .upload(3, 'cloud', 'ready'),
    steps: ['prune builds 1; uploads '],
    waits: [NEXT],
  },
});
