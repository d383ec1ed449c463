import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { debianInCloud, imageId, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

const three = (given: Situation) =>
  given
    .build(1, 'deleted')
    .build(2, 'ready')
    .build(3, 'ready')
    .upload(1, 'cloud', 'ready')
    .upload(2, 'cloud', 'ready')
    .upload(3, 'cloud', 'ready');

const replaced = new Situation()
  .diskimage('debian')
  .diskimage('trixie')
  .provider('cloud', [{ name: 'debian', diskimage: 'trixie' }])
  .build(1, 'ready')
  .build(2, 'ready', { diskimage: 'trixie' })
  .upload(1, 'cloud', 'ready')
  .upload(2, 'cloud', 'ready', { diskimage: 'trixie', imageName: 'debian' });

testSituations({
  'uploads beyond keep are deleted, oldest first': {
    given: three(debianInCloud()),
    steps: ['delete-upload 101'],
  },
  'no upload is deleted while there are as many as keep allows': {
    given: three(debianInCloud({ keep: 3 })),
    steps: [],
  },
  'a keep of 0 keeps one upload': {
    given: three(debianInCloud({ keep: 0 })),
    steps: ['delete-upload 101', 'delete-upload 102', 'delete-build 2'],
  },
  'a missing upload is uploaded again, and its record stays': {
    given: debianInCloud({ keep: 1 }).build(1, 'ready').upload(1, 'cloud', 'missing'),
    steps: ['upload 1 to cloud/debian'],
  },
  'a missing upload is not uploaded again while the provider has a newer build': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready')
      .upload(1, 'cloud', 'missing')
      .upload(2, 'cloud', 'ready'),
    steps: [],
  },
  'two images of one build in a provider count as one': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready', { number: 103 }),
    steps: [],
  },
  'all images of a build beyond keep are deleted, including missing ones': {
    given: debianInCloud({ keep: 1 })
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(1, 'cloud', 'missing', { number: 111 })
      .upload(2, 'cloud', 'ready'),
    steps: ['delete-upload 111', 'delete-upload 101'],
  },
  'a missing upload is deleted when its image leaves the configuration': {
    given: new Situation().provider('cloud', []).build(1, 'deleted').upload(1, 'cloud', 'missing'),
    steps: ['delete-upload 101'],
  },
  'an upload that is not ready replaces no other upload': {
    given: debianInCloud({ keep: 1 })
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'uploading')
      .inProgress(uploadId(102)),
    steps: [],
  },
  'an upload is as new as its build, whenever it was requested': {
    given: debianInCloud({ keep: 1 })
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(2, 'cloud', 'ready', { number: 101 })
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: ['delete-upload 102'],
  },
  'keep counts the uploads of each provider': {
    given: debianInCloud({ keep: 1 })
      .provider('other', ['debian'])
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'other', 'ready'),
    steps: ['upload 2 to cloud/debian'],
  },
  'no old upload is deleted while the provider is paused': {
    given: three(new Situation().diskimage('debian').provider('cloud', ['debian'], { pause: true })),
    steps: [],
  },
  'an upload’s deletion that is running is not planned again': {
    given: three(debianInCloud()).inProgress(uploadId(101)),
    steps: [],
  },

  'a withdrawn upload is deleted when the provider has another': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'deleting', { withdrawn: true })
      .inProgress(imageId(2))
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready'),
    steps: ['delete-upload 102'],
  },
  'a withdrawn upload stays until the provider has another': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(1, 'cloud', 'uploading')
      .inProgress(uploadId(101))
      .upload(2, 'cloud', 'ready'),
    steps: [],
  },
  'a withdrawn upload does not count towards keep': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready')
      .build(3, 'deleting', { withdrawn: true })
      .inProgress(imageId(3))
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready')
      .upload(3, 'cloud', 'ready'),
    steps: ['delete-upload 103'],
  },

  'an image that left the provider’s configuration is deleted there': {
    given: new Situation()
      .diskimage('debian')
      .provider('cloud', [])
      .build(1, 'ready')
      .upload(1, 'cloud', 'ready'),
    steps: ['delete-upload 101'],
  },
  'a disk image that left the configuration is deleted everywhere': {
    given: new Situation().provider('cloud', ['debian']).build(1, 'ready').upload(1, 'cloud', 'ready'),
    steps: ['delete-upload 101', 'delete-build 1'],
  },
  'an image stays until the disk image that replaces it is uploaded': {
    given: new Situation()
      .diskimage('debian')
      .diskimage('trixie')
      .provider('cloud', [{ name: 'debian', diskimage: 'trixie' }])
      .build(1, 'ready')
      .build(2, 'ready', { diskimage: 'trixie' })
      .upload(1, 'cloud', 'ready'),
    steps: ['upload 2 to cloud/debian'],
  },
  'an image that another disk image has replaced is deleted': {
    given: replaced,
    steps: ['delete-upload 101'],
  },
  'uploads in a provider that is not configured wait for its credentials': {
    given: new Situation()
      .diskimage('debian')
      .build(1, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(1, 'gone', 'failed', { number: 102 }),
    steps: ['prune builds ; uploads 102'],
    waits: [/^provider cloud: image debian: .*credentials are missing.* to delete 0000000101-ownerabc$/],
  },

  'an upload’s deletion that is not running is resumed': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'deleting', { number: 101 })
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: ['delete-upload 101'],
  },
  'an upload’s failed deletion is retried later': {
    given: three(debianInCloud()).retryIn(uploadId(101), 90),
    steps: [],
    waits: [/^upload 0000000101-ownerabc: the last attempt failed.*\(90 s\)/],
  },
  'a failed upload’s partial data is discarded': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { leftovers: true })
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: ['discard 101'],
  },
  'a failed upload whose discard failed is discarded again later': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { leftovers: true })
      .upload(1, 'cloud', 'ready', { number: 102 })
      .retryIn(uploadId(101), 90),
    steps: [],
    waits: [/^upload 0000000101-ownerabc: .*\(90 s\)/],
  },
});

test('the reason for a deletion names the disk image that replaces another', () => {
  const [step] = replaced.plan().steps;
  equal(
    step?.reason,
    'the image now belongs to diskimage trixie, and the provider has trixie-0000000002-ownerabc',
  );
});
