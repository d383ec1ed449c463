import { deepEqual, match } from 'node:assert/strict';
import { test } from 'node:test';
import { rollback } from '@nodepool-builder/image-manager';
import { debianInCloud, imageId } from './situation.ts';

const outcome = (given: ReturnType<typeof debianInCloud>) => {
  const result = rollback(given.state, 'debian');
  return 'refused' in result ? result.refused : result.withdrawn.id;
};

test('the newest of two builds is withdrawn, and the state stays as it is', () => {
  const given = debianInCloud().build(1, 'ready').build(2, 'ready');
  const before = structuredClone(given.builds);
  deepEqual(rollback(given.state, 'debian'), {
    withdrawn: { ...before.get(imageId(2)), withdrawn: true },
  });
  deepEqual(given.builds, before);
});

test('a second rollback withdraws the one before', () => {
  const given = debianInCloud().build(1, 'ready').build(2, 'ready').build(3, 'ready', { withdrawn: true });
  deepEqual(outcome(given), imageId(2));
});

test('an older upload is enough to go back to', () => {
  const given = debianInCloud().build(1, 'deleted').build(2, 'ready').upload(1, 'cloud', 'ready');
  deepEqual(outcome(given), imageId(2));
});

test('what providers use is withdrawn though its file is gone', () => {
  const given = debianInCloud().build(1, 'ready').build(2, 'deleted').upload(2, 'cloud', 'ready');
  deepEqual(outcome(given), imageId(2));
});

for (const [sentence, given] of Object.entries({
  nothing: debianInCloud().build(1, 'failed').build(2, 'ready'),
  'an upload that is not ready': debianInCloud()
    .build(1, 'deleted')
    .build(2, 'ready')
    .upload(1, 'cloud', 'failed'),
  'a withdrawn build': debianInCloud().build(1, 'ready', { withdrawn: true }).build(2, 'ready'),
  'a build of another disk image': debianInCloud()
    .build(1, 'ready', { diskimage: 'trixie' })
    .build(2, 'ready'),
})) {
  test(`refused with ${sentence} behind it`, () => {
    match(outcome(given), /^debian-0000000002-ownerabc is the only good build .* new one built\.$/);
  });
}

test('refused without a ready build', () => {
  match(outcome(debianInCloud().build(1, 'building')), /^Diskimage debian has no ready build/);
});
