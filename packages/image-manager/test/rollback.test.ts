import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { rollback } from '../src/request-handler.ts';
import { DAY, debianInCloud, imageId, type Situation } from './planning/situation.ts';

/** Returns the build that a rollback withdraws, or the reason why it withdraws none. */
const outcome = (given: Situation): string | undefined => {
  const result = rollback(given.state, 'debian');
  return typeof result === 'string' ? result : result.builds?.[0]?.id;
};

test('a rollback withdraws the newest of two builds and leaves the state unchanged', () => {
  const given = debianInCloud().build(1, 'ready').build(2, 'ready');
  const before = structuredClone(given.builds);
  deepEqual(rollback(given.state, 'debian'), { builds: [{ ...before.get(imageId(2)), withdrawn: true }] });
  deepEqual(given.builds, before);
});

test('a rollback of a build that is no longer the newest is rejected', () => {
  const given = debianInCloud().build(1, 'ready').build(2, 'ready').build(3, 'ready');
  const { builds: [withdrawn] = [] } = Object(rollback(given.state, 'debian', imageId(3)));
  equal(withdrawn.id, imageId(3));
  match(rollback(given.state, 'debian', imageId(2)) as string, /0002-ownerabc is no longer the newest/);
});

test('a second rollback withdraws the build before the first withdrawn one', () => {
  const given = debianInCloud().build(1, 'ready').build(2, 'ready').build(3, 'ready', { withdrawn: true });
  equal(outcome(given), imageId(2));
});

test('a build that exists only as an older upload is enough to roll back to', () => {
  const given = debianInCloud().build(1, 'deleted').build(2, 'ready').upload(1, 'cloud', 'ready');
  equal(outcome(given), imageId(2));
});

test('a rollback withdraws an image that only providers have', () => {
  const given = debianInCloud().build(1, 'ready').build(2, 'deleted').upload(2, 'cloud', 'ready');
  equal(outcome(given), imageId(2));
});

test('a rollback withdraws the build with the highest number, even if another has a date in the future', () => {
  const given = debianInCloud()
    .build(1, 'ready', { ago: -30 * DAY })
    .build(2, 'ready');
  equal(outcome(given), imageId(2));
});

for (const [sentence, given] of Object.entries({
  failed: debianInCloud().build(1, 'failed').build(2, 'ready'),
  'deleted and its upload not ready': debianInCloud()
    .build(1, 'deleted')
    .build(2, 'ready')
    .upload(1, 'cloud', 'failed'),
  withdrawn: debianInCloud().build(1, 'ready', { withdrawn: true }).build(2, 'ready'),
  'for another disk image': debianInCloud().build(1, 'ready', { diskimage: 'trixie' }).build(2, 'ready'),
})) {
  test(`a rollback is rejected if the only other build is ${sentence}`, () => {
    const build = 'debian-0000000002-ownerabc';
    equal(
      outcome(given),
      `${build} is the only good build of disk image "debian"; request a new build first`,
    );
  });
}

test('a rollback without a ready build is rejected', () => {
  const given = debianInCloud().build(1, 'building');
  equal(outcome(given), 'disk image "debian" has no ready build to withdraw; request a build');
});
