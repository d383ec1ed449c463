import { DAY, debianInCloud, HOUR, Situation, uploadId } from './situation.ts';
import { testSituations } from './situation-table.ts';

const debian = (settings = {}) => new Situation().diskimage('debian', settings);
const failures = (given: Situation, count: number) => {
  for (let number = 1; number <= count; number++) given.build(number, 'failed', { ago: DAY - number });
  return given;
};

testSituations({
  'a deleted build that nothing is left of is forgotten': {
    given: debian().build(1, 'deleted').build(2, 'ready'),
    steps: ['prune builds 1; uploads '],
  },
  'a deleted build is remembered while there are uploads of it': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'ready')
      .upload(2, 'cloud', 'ready'),
    steps: [],
  },
  'a deleted build goes with its last deleted upload': {
    given: debianInCloud()
      .build(1, 'deleted')
      .build(2, 'ready')
      .upload(1, 'cloud', 'deleted')
      .upload(2, 'cloud', 'ready'),
    steps: ['prune builds 1; uploads 101'],
  },
  'the newest success is remembered though it was deleted: it is not due again': {
    given: debian({ rebuildAge: DAY })
      .build(1, 'ready', { ago: 2 * DAY })
      .build(2, 'deleted', { ago: HOUR }),
    steps: [],
  },
  'of a disk image that is gone nothing is remembered': {
    given: new Situation().build(1, 'deleted').build(2, 'failed'),
    steps: ['prune builds 2,1; uploads '],
  },
  'failures that a success has followed are forgotten': {
    given: debianInCloud()
      .build(1, 'failed')
      .build(2, 'ready')
      .upload(2, 'cloud', 'failed', { number: 101 })
      .upload(2, 'cloud', 'ready', { number: 102 }),
    steps: ['prune builds 1; uploads 101'],
  },
  'ten failures in a row are remembered': { given: failures(debian(), 10), steps: ['build debian'] },
  'more than ten failures in a row are not': {
    given: failures(debian(), 12),
    steps: ['build debian', 'prune builds 2,1; uploads '],
  },
  'more failures are remembered as long as pauses grow with them': {
    given: failures(debian(), 14).retryDelay(1),
    steps: ['build debian', 'prune builds 1; uploads '],
  },
  'failed uploads of an image that is wanted no more are forgotten': {
    given: new Situation()
      .diskimage('debian')
      .provider('cloud', [])
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed'),
    steps: ['prune builds ; uploads 101'],
  },
  'a failed upload is remembered while the provider may hold what it left': {
    given: debianInCloud()
      .build(1, 'ready')
      .upload(1, 'cloud', 'failed', { number: 101, leftovers: true })
      .underWay(uploadId(101))
      .upload(1, 'cloud', 'ready', { number: 102 }),
    steps: [],
  },
});
