import { debianInCloud, imageId, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

const threeBuilds = (given: Situation) => given.build(1, 'ready').build(2, 'ready').build(3, 'ready');
const debian = (settings = {}) => new Situation().diskimage('debian', settings);

testSituations({
  'the newest are kept on disk, the older go': { given: threeBuilds(debian()), steps: ['delete-build 1'] },
  'as many are kept on disk as are to be': { given: threeBuilds(debian({ keep: 3 })), steps: [] },
  'a keep of 0 keeps the newest': {
    given: threeBuilds(debian({ keep: 0 })),
    steps: ['delete-build 1', 'delete-build 2'],
  },
  'of a paused disk image nothing goes by age': { given: threeBuilds(debian({ pause: true })), steps: [] },
  'a build that is being uploaded stays until that has ended': {
    given: threeBuilds(debianInCloud()).upload(1, 'cloud', 'uploading').underWay(uploadId(101)),
    steps: [],
    waits: [
      /its upload begins when/,
      /^build debian-0000000001-ownerabc: .* when its upload 0000000101-ownerabc has ended/,
    ],
  },

  'a withdrawn build goes': {
    given: debian().build(1, 'ready').build(2, 'ready', { withdrawn: true }),
    steps: ['delete-build 2'],
  },
  'a withdrawn build counts as none of those that are kept': {
    given: debian().build(1, 'ready').build(2, 'ready').build(3, 'ready', { withdrawn: true }),
    steps: ['delete-build 3'],
  },
  'a withdrawn build stays while its upload is the only one of a provider': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(2, 'cloud', 'ready'),
    steps: ['upload 1 to cloud/debian'],
  },
  'a withdrawn build goes when its upload is not the only one any more': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready'),
    steps: ['delete-upload 102', 'delete-build 2'],
  },
  'a withdrawn build stays if it is all there is on disk': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready', { withdrawn: true })
      .build(3, 'ready', { withdrawn: true })
      .upload(1, 'cloud', 'ready'),
    steps: ['delete-build 2'],
  },

  'builds of a disk image that is gone go': {
    given: new Situation().build(1, 'ready').build(2, 'ready'),
    steps: ['delete-build 1', 'delete-build 2'],
  },
  'builds of a disk image that is gone go when their uploads have ended': {
    given: new Situation()
      .provider('cloud', [])
      .build(1, 'ready')
      .upload(1, 'cloud', 'uploading')
      .underWay(uploadId(101)),
    steps: [],
    waits: [/^build debian-0000000001-ownerabc: the configuration has no diskimage debian any more/],
  },

  'a deletion that nobody follows is gone on with': {
    given: debian().build(1, 'deleting').build(2, 'ready'),
    steps: ['delete-build 1'],
  },
  'a deletion that somebody follows': {
    given: debian().build(1, 'deleting').build(2, 'ready').underWay(imageId(1)),
    steps: [],
  },
  'a deletion that failed is tried again later': {
    given: debian().build(1, 'deleting').build(2, 'ready').retryIn(imageId(1), 90),
    steps: [],
    waits: [/^build debian-0000000001-ownerabc: its last try failed.*\(90 s\)/],
  },
  'a deletion that somebody asked for waits for an upload': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'deleting')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'uploading')
      .underWay(uploadId(102)),
    steps: [],
    waits: [/^build debian-0000000002-ownerabc: .* when its upload 0000000102-ownerabc has ended/],
  },
});
