import { DAY, debianInCloud, HOUR, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

const debian = (settings = {}) => new Situation().diskimage('debian', settings);
const failures = (given: Situation, count: number) => {
  for (let number = 1; number <= count; number++) given.build(number, 'failed', { ago: DAY - number });
  return given;
};

testSituations({
  'a deleted build’s record is deleted': {
    given: debian().build(1, 'deleted').build(2, 'ready'),
    steps: ['prune builds 1; uploads '],
  },
  'a deleted build’s record stays while it has uploads': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready'),
    steps: [],
  },
  'a deleted build’s record is deleted with its last upload': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'deleted')
      .upload(2, 'cloud', 'ready'),
    steps: ['prune builds 1; uploads 101'],
  },
  'the newest successful build stays on record after its deletion, so that no build is due': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'deleted', { ago: HOUR }),
    steps: [],
  },
  'all records of a disk image that left the configuration are deleted': {
    given: new Situation().build(1, 'deleted').build(2, 'failed'),
    steps: ['prune builds 2,1; uploads '],
  },
  'records of failures before a success are deleted': {
    given: debianInCloud()
      .build(1, 'failed')
      .build(2, 'ready')
      .upload(2, 'cloud', 'failed', { number: 101 })
      .upload(2, 'cloud', 'ready', { number: 102 }),
    steps: ['prune builds 1; uploads 101'],
  },
  'ten failed builds in a row stay on record': { given: failures(debian(), 10), steps: ['build debian'] },
  'the oldest of more than ten failed builds in a row are deleted from the records': {
    given: failures(debian(), 12),
    steps: ['build debian', 'prune builds 2,1; uploads '],
  },
  'more than ten failures stay on record while the pause grows with them': {
    given: failures(debian(), 14).retryDelay(1),
    steps: ['build debian', 'prune builds 1; uploads '],
  },
  'records of failed uploads are deleted when their image leaves the configuration': {
    given: new Situation()
      .diskimage('debian')
      .provider('cloud', [])
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed'),
    steps: ['prune builds ; uploads 101'],
  },
  'a failed upload stays on record while the provider may have partial data of it': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { number: 101, leftovers: true })
      .inProgress(uploadId(101))
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: [],
  },
});
