import { debianInCloud, imageId, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

const threeBuilds = (given: Situation) => given.build(1, 'ready').build(2, 'ready').build(3, 'ready');
const debian = (settings = {}) => new Situation().diskimage('debian', settings);

testSituations({
  'builds beyond keep are deleted, oldest first': { given: threeBuilds(debian()), steps: ['delete-build 1'] },
  'no build is deleted while there are as many as keep allows': {
    given: threeBuilds(debian({ keep: 3 })),
    steps: [],
  },
  'a keep of 0 keeps the newest build': {
    given: threeBuilds(debian({ keep: 0 })),
    steps: ['delete-build 1', 'delete-build 2'],
  },
  'no old build of a paused disk image is deleted': {
    given: threeBuilds(debian({ pause: true })),
    steps: [],
  },
  'a build is deleted after its upload': {
    given: threeBuilds(debianInCloud()).upload(1, 'cloud', 'uploading').inProgress(uploadId(101)),
    steps: [],
    waits: [
      /its upload starts after/,
      /^build debian-0000000001-ownerabc: .* after its upload 0000000101-ownerabc$/,
    ],
  },

  'a withdrawn build is deleted': {
    given: debian().build(1, 'ready').build(2, 'ready', { withdrawn: true }),
    steps: ['delete-build 2'],
  },
  'a withdrawn build does not count towards keep': {
    given: debian().build(1, 'ready').build(2, 'ready').build(3, 'ready', { withdrawn: true }),
    steps: ['delete-build 3'],
  },
  'a withdrawn build stays while a provider has no other upload': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(2, 'cloud', 'ready'),
    steps: ['upload 1 to cloud/debian'],
  },
  'a withdrawn build is deleted once the provider has another upload': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready'),
    steps: ['delete-upload 102', 'delete-build 2'],
  },
  'the last build on disk stays, even if it is withdrawn': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready', { withdrawn: true })
      .build(3, 'ready', { withdrawn: true })
      .upload(1, 'cloud', 'ready'),
    steps: ['delete-build 2'],
  },

  'all builds of a disk image that left the configuration are deleted': {
    given: new Situation().build(1, 'ready').build(2, 'ready'),
    steps: ['delete-build 1', 'delete-build 2'],
  },
  'builds of a disk image that left the configuration are deleted after their uploads': {
    given: new Situation()
      .provider('cloud', [])
      .build(1, 'ready')
      .upload(1, 'cloud', 'uploading')
      .inProgress(uploadId(101)),
    steps: [],
    waits: [/^build debian-0000000001-ownerabc: the configuration no longer has diskimage debian/],
  },

  'a build’s deletion that is not running is resumed': {
    given: debian().build(1, 'deleting').build(2, 'ready'),
    steps: ['delete-build 1'],
  },
  'a build’s deletion that is running is not planned again': {
    given: debian().build(1, 'deleting').build(2, 'ready').inProgress(imageId(1)),
    steps: [],
  },
  'a build’s failed deletion is retried later': {
    given: debian().build(1, 'deleting').build(2, 'ready').retryIn(imageId(1), 90),
    steps: [],
    waits: [/^build debian-0000000001-ownerabc: the last attempt failed.*\(90 s\)/],
  },
  'a build’s requested deletion waits for an upload': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'deleting')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'uploading')
      .inProgress(uploadId(102)),
    steps: [],
    waits: [/^build debian-0000000002-ownerabc: .* after its upload 0000000102-ownerabc$/],
  },
});
