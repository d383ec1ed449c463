import { DAY, debianInCloud, HOUR, MINUTE, type Situation } from './situation.ts';
import { testSituations } from './situation-table.ts';

const debian = (): Situation => debianInCloud({ followsZuul: true });

const NEXT = /^diskimage debian: builders take the next build of Zuul on their own$/;

testSituations({
  'what Zuul builds is not built because there is none': {
    given: debian(),
    steps: [],
    waits: [/^diskimage debian: there is no ready build of it; builders take the next build of Zuul/],
  },
  'nor because the only one was deleted': {
    given: debian().build(1, 'deleted'),
    steps: [],
    waits: [/there is no ready build of it/],
  },
  'nor for its age or its configuration': {
    given: debianInCloud({ followsZuul: true, rebuildAge: DAY, rebuildCron: '* * * * *' })
      .build(1, 'ready', { ago: 100 * DAY, configuration: 'former' })
      .upload(1, 'cloud', 'ready'),
    steps: [],
    waits: [NEXT],
  },
  'that nobody looks for it is said': {
    given: debian().withoutBuilders(),
    steps: [],
    waits: [/^diskimage debian: no builder offers image-build:debian, so that none looks/],
  },
  'a paused one waits for nothing': {
    given: debianInCloud({ followsZuul: true, pause: true }),
    steps: [],
  },
  'it is built for who asks': { given: debian().demanded('debian'), steps: ['build debian'] },
  'it is built if it is absent for long, and a provider needs it': {
    given: debian()
      .build(1, 'ready')
      .absent(1, 30 * MINUTE),
    steps: ['build debian'],
    waits: [/no builder offers image-upload/],
  },
  'it is uploaded like any other': {
    given: debian().build(1, 'ready'),
    steps: ['upload 1 to cloud/debian'],
    waits: [NEXT],
  },
  'one that ended before the newest, and was taken behind it, takes no place from it': {
    given: debian()
      .build(5, 'ready', { ago: HOUR })
      .build(4, 'ready', { ago: 2 * HOUR })
      .upload(5, 'cloud', 'ready')
      .build(9, 'ready', { ago: 3 * HOUR, id: `debian-9-${'f'.repeat(32)}` }),
    steps: ['delete-build 9'],
    waits: [NEXT],
  },
  'what a person took away is remembered, what was too old is not': {
    given: debian()
      .build(1, 'deleted')
      .build(2, 'deleted', { withdrawn: true })
      .build(3, 'ready')
      .upload(3, 'cloud', 'ready'),
    steps: ['prune builds 1; uploads '],
    waits: [NEXT],
  },
});
