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
  'the newest are kept, the older go': { given: three(debianInCloud()), steps: ['delete-upload 101'] },
  'as many are kept as are to be': { given: three(debianInCloud({ keep: 3 })), steps: [] },
  'a keep of 0 keeps one': {
    given: three(debianInCloud({ keep: 0 })),
    steps: ['delete-upload 101', 'delete-upload 102', 'delete-build 2'],
  },
  'an upload that is not ready replaces none': {
    given: debianInCloud({ keep: 1 })
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'uploading')
      .underWay(uploadId(102)),
    steps: [],
  },
  'an upload is as new as its build, not as its request': {
    given: debianInCloud({ keep: 1 })
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(2, 'cloud', 'ready', { number: 101 })
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: ['delete-upload 102'],
  },
  'providers are counted one by one': {
    given: debianInCloud({ keep: 1 })
      .provider('other', ['debian'])
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'other', 'ready'),
    steps: ['upload 2 to cloud/debian'],
  },
  'where it is paused nothing goes by age': {
    given: three(new Situation().diskimage('debian').provider('cloud', ['debian'], { pause: true })),
    steps: [],
  },
  'who is at work on it already': { given: three(debianInCloud()).underWay(uploadId(101)), steps: [] },

  'a withdrawn one goes when another is there': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'deleting', { withdrawn: true })
      .underWay(imageId(2))
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready'),
    steps: ['delete-upload 102'],
  },
  'a withdrawn one stays until another is there': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(1, 'cloud', 'uploading')
      .underWay(uploadId(101))
      .upload(2, 'cloud', 'ready'),
    steps: [],
  },
  'a withdrawn one counts as none of those that are kept': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready')
      .build(3, 'deleting', { withdrawn: true })
      .underWay(imageId(3))
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready')
      .upload(3, 'cloud', 'ready'),
    steps: ['delete-upload 103'],
  },

  'an image that the provider is not to have any more goes': {
    given: new Situation()
      .diskimage('debian')
      .provider('cloud', [])
      .build(1, 'ready')
      .upload(1, 'cloud', 'ready'),
    steps: ['delete-upload 101'],
  },
  'a disk image that is gone goes everywhere': {
    given: new Situation().provider('cloud', ['debian']).build(1, 'ready').upload(1, 'cloud', 'ready'),
    steps: ['delete-upload 101', 'delete-build 1'],
  },
  'what another disk image replaces stays until that is there': {
    given: new Situation()
      .diskimage('debian')
      .diskimage('trixie')
      .provider('cloud', [{ name: 'debian', diskimage: 'trixie' }])
      .build(1, 'ready')
      .build(2, 'ready', { diskimage: 'trixie' })
      .upload(1, 'cloud', 'ready'),
    steps: ['upload 2 to cloud/debian'],
  },
  'what another disk image has replaced goes': { given: replaced, steps: ['delete-upload 101'] },
  'what is in a provider that is not configured waits for its credentials': {
    given: new Situation()
      .diskimage('debian')
      .build(1, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(1, 'gone', 'failed', { number: 102 }),
    steps: ['prune builds ; uploads 102'],
    waits: [/^provider cloud: image debian: .*nobody holds the credentials.* forget 0000000101-ownerabc$/],
  },

  'a deletion that nobody follows is gone on with': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'deleting', { number: 101 })
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: ['delete-upload 101'],
  },
  'a deletion that failed is tried again later': {
    given: three(debianInCloud()).retryIn(uploadId(101), 90),
    steps: [],
    waits: [/^upload 0000000101-ownerabc: its last try failed.*\(90 s\)/],
  },
  'what a failed upload left is discarded': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { leftovers: true })
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: ['discard 101'],
  },
  'a discarding that failed is tried again later': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { leftovers: true })
      .upload(1, 'cloud', 'ready', { number: 102 })
      .retryIn(uploadId(101), 90),
    steps: [],
    waits: [/^upload 0000000101-ownerabc: .*\(90 s\)/],
  },
});

test('the reason names the disk image that replaces another', () => {
  const [step] = replaced.plan().steps;
  equal(step?.reason, 'the image is of diskimage trixie now, and trixie-0000000002-ownerabc is there');
});
