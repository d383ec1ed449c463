import { debianInCloud, HOUR, imageId, MINUTE, NOW, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

testSituations({
  'every provider gets the newest build': {
    given: debianInCloud()
      .provider('other', ['debian', { name: 'copy', diskimage: 'debian' }])
      .build(1, 'ready')
      .build(2, 'ready'),
    steps: ['upload 2 to cloud/debian', 'upload 2 to other/debian', 'upload 2 to other/copy'],
  },
  'what is there is not uploaded again': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'ready'),
    steps: [],
  },
  'what is being uploaded is not uploaded again': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'uploading').underWay(uploadId(101)),
    steps: [],
  },
  'what somebody deleted is uploaded again': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'deleting').underWay(uploadId(101)),
    steps: ['upload 1 to cloud/debian'],
  },
  'a build that has not ended is not uploaded': {
    given: debianInCloud().build(1, 'building').underWay(imageId(1)),
    steps: [],
  },
  'a newer upload whose file is gone is better than the newest on disk': {
    given: debianInCloud({ keep: 1 }).build(1, 'ready').build(2, 'deleted').upload(2, 'cloud', 'ready'),
    steps: [],
  },

  'an upload that nobody follows is resumed': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'uploading'),
    steps: ['resume-upload 101'],
  },
  'an upload is followed though the provider is gone from the configuration': {
    given: new Situation().diskimage('debian').build(1, 'ready').upload(1, 'cloud', 'uploading'),
    steps: ['resume-upload 101'],
  },
  'the newer begins when the older has ended': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready')
      .upload(1, 'cloud', 'uploading')
      .underWay(uploadId(101)),
    steps: [],
    waits: [/its upload begins when that of debian-0000000001-ownerabc has ended/],
  },

  'a paused disk image is not uploaded': {
    given: debianInCloud({ pause: true }).build(1, 'ready'),
    steps: [],
    waits: [/^provider cloud: image debian: .*diskimage debian is paused/],
  },
  'a paused provider gets nothing; the others do': {
    given: debianInCloud().provider('other', ['debian'], { pause: true }).build(1, 'ready'),
    steps: ['upload 1 to cloud/debian'],
    waits: [/^provider other: image debian: .*provider other is paused/],
  },
  'a paused image gets nothing': {
    given: new Situation()
      .diskimage('debian')
      .provider('cloud', [{ name: 'debian', pause: true }])
      .build(1, 'ready'),
    steps: [],
    waits: [/image debian of provider cloud is paused/],
  },
  'no builder has the file': {
    given: debianInCloud().build(1, 'ready').absent(1, MINUTE),
    steps: [],
    waits: [/no builder offers image-upload:debian-0000000001-ownerabc/],
  },

  'after a failure there is a pause; it holds up no other provider': {
    given: debianInCloud()
      .provider('other', ['debian'])
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { ago: 59 }),
    steps: ['upload 1 to other/debian'],
    waits: [/^provider cloud: image debian: .*the last try failed.*\(1 s\)/],
  },
  'the pause is over': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'failed', { ago: 60 }),
    steps: ['upload 1 to cloud/debian'],
  },
  'failures of an older build count too': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready')
      .upload(1, 'cloud', 'failed', { ago: HOUR })
      .upload(2, 'cloud', 'failed', { ago: HOUR, endedAt: NOW - 100_000 }),
    steps: [],
    waits: [/the last 2 tries failed.*\(20 s\)/],
  },
  'a success in between ends a row of failures, though it was deleted since': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { number: 101, leftovers: true })
      .underWay(uploadId(101))
      .upload(1, 'cloud', 'deleted', { number: 102 })
      .upload(1, 'cloud', 'failed', { number: 103, ago: 60 }),
    steps: ['upload 1 to cloud/debian'],
  },

  'a failed upload that was deleted is no success': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { number: 101, ago: 100 })
      .upload(1, 'cloud', 'deleting', { number: 102, ago: 90, error: 'broken' })
      .underWay(uploadId(102))
      .upload(1, 'cloud', 'failed', { number: 103, ago: 60 }),
    steps: [],
    waits: [/the last 2 tries failed.*\(60 s\)/],
  },

  'after a rollback a provider that lacks the one before gets it': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(2, 'cloud', 'ready'),
    steps: ['upload 1 to cloud/debian'],
  },
  'after a rollback a provider that has the one before needs none': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'deleting', { withdrawn: true })
      .underWay(imageId(2))
      .upload(1, 'cloud', 'ready'),
    steps: [],
  },
});
