import { DAY, debianInCloud, HOUR, imageId, MINUTE, NOW, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

testSituations({
  'every provider gets the newest build': {
    given: debianInCloud()
      .provider('other', ['debian', { name: 'copy', diskimage: 'debian' }])
      .build(1, 'ready')
      .build(2, 'ready'),
    steps: ['upload 2 to cloud/debian', 'upload 2 to other/debian', 'upload 2 to other/copy'],
  },
  'an image that the provider has is not uploaded again': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'ready'),
    steps: [],
  },
  'an image is not uploaded while its upload runs': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'uploading').inProgress(uploadId(101)),
    steps: [],
  },
  'an image whose upload is being deleted on request is uploaded again': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'deleting').inProgress(uploadId(101)),
    steps: ['upload 1 to cloud/debian'],
  },
  'a running build is not uploaded': {
    given: debianInCloud().build(1, 'building').inProgress(imageId(1)),
    steps: [],
  },
  'a provider with a newer image does not get the newest on disk': {
    given: debianInCloud({ keep: 1 }).build(1, 'ready').build(2, 'deleted').upload(2, 'cloud', 'ready'),
    steps: [],
  },

  'an upload on record that is not running is resumed': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'uploading'),
    steps: ['resume-upload 101'],
  },
  'an upload is resumed even if the configuration no longer has its provider': {
    given: new Situation().diskimage('debian').build(1, 'ready').upload(1, 'cloud', 'uploading'),
    steps: ['resume-upload 101'],
  },
  'an upload waits for an older build’s upload': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready')
      .upload(1, 'cloud', 'uploading')
      .inProgress(uploadId(101)),
    steps: [],
    waits: [/its upload starts after the upload of debian-0000000001-ownerabc/],
  },

  'a cancelled upload of a build is not tried again': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { ago: DAY, cancelledBy: 'me@here' }),
    steps: [],
    waits: [
      /^provider cloud: image debian: .*its upload was cancelled by me@here; the next build is uploaded$/,
    ],
  },
  'a build after one whose upload was cancelled is uploaded': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready')
      .upload(1, 'cloud', 'failed', { ago: 1, cancelledBy: 'me@here' }),
    steps: ['upload 2 to cloud/debian'],
  },

  'a paused disk image is not uploaded': {
    given: debianInCloud({ pause: true }).build(1, 'ready'),
    steps: [],
    waits: [/^provider cloud: image debian: .*diskimage debian is paused/],
  },
  'a paused provider gets no image, and the other providers do': {
    given: debianInCloud().provider('other', ['debian'], { pause: true }).build(1, 'ready'),
    steps: ['upload 1 to cloud/debian'],
    waits: [/^provider other: image debian: .*provider other is paused/],
  },
  'a paused image is uploaded nowhere': {
    given: new Situation()
      .diskimage('debian')
      .provider('cloud', [{ name: 'debian', pause: true }])
      .build(1, 'ready'),
    steps: [],
    waits: [/image debian of provider cloud is paused/],
  },
  'an upload that no builder offers waits for a builder': {
    given: debianInCloud().build(1, 'ready').absent(1, MINUTE),
    steps: [],
    waits: [/no builder offers image-upload:debian-0000000001-ownerabc/],
  },

  'a failed upload is retried after a pause, and other providers do not wait': {
    given: debianInCloud()
      .provider('other', ['debian'])
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { ago: 59 }),
    steps: ['upload 1 to other/debian'],
    waits: [/^provider cloud: image debian: .*the last attempt failed.*\(1 s\)/],
  },
  'a failed upload is retried once its pause is over': {
    given: debianInCloud().build(1, 'ready').upload(1, 'cloud', 'failed', { ago: 60 }),
    steps: ['upload 1 to cloud/debian'],
  },
  'failed uploads of an older build lengthen the pause as well': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready')
      .upload(1, 'cloud', 'failed', { ago: HOUR })
      .upload(2, 'cloud', 'failed', { ago: HOUR, endedAt: NOW - 100_000 }),
    steps: [],
    waits: [/the last 2 attempts failed.*\(20 s\)/],
  },
  'a successful upload ends a series of failures, even if it was deleted since': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { number: 101, leftovers: true })
      .inProgress(uploadId(101))
      .upload(1, 'cloud', 'deleted', { number: 102 })
      .upload(1, 'cloud', 'failed', { number: 103, ago: 60 }),
    steps: ['upload 1 to cloud/debian'],
  },

  'a failed upload that was deleted does not count as a success': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { number: 101, ago: 100 })
      .upload(1, 'cloud', 'deleting', { number: 102, ago: 90, error: 'broken' })
      .inProgress(uploadId(102))
      .upload(1, 'cloud', 'failed', { number: 103, ago: 60 }),
    steps: [],
    waits: [/the last 2 attempts failed.*\(60 s\)/],
  },

  'a provider without the previous build gets it after a rollback': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'ready', { withdrawn: true })
      .upload(2, 'cloud', 'ready'),
    steps: ['upload 1 to cloud/debian'],
  },
  'a provider with the previous build gets no upload after a rollback': {
    given: debianInCloud()
      .build(1, 'ready')
      .build(2, 'deleting', { withdrawn: true })
      .inProgress(imageId(2))
      .upload(1, 'cloud', 'ready'),
    steps: [],
  },
});
