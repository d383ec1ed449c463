import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progressOfLine } from '../../src/dib/phases.ts';

/** Lines of disk-image-create 3.13, in the order in which they appear. */
const LINES = [
  '2026-11-21 12:00:01.100 | dib-run-parts Running /tmp/dib_build.X/hooks/root.d/10-mini-os',
  '2026-11-21 12:00:02.100 | dib-run-parts Running /tmp/dib_build.X/hooks/extra-data.d/01-copy',
  'dib-run-parts Running /tmp/in_target.d/pre-install.d/00-x',
  'dib-run-parts Running /tmp/in_target.d/install.d/50-mini-mark',
  'dib-run-parts Running /tmp/in_target.d/post-install.d/00-x',
  'dib-run-parts Running /tmp/dib_build.X/hooks/cleanup.d/01-x',
  '2026-11-21 12:00:05.100 | Converting image using qemu-img convert',
  '2026-11-21 12:00:06.100 | Image file /images/debian-1.qcow2 created...',
  '2026-11-21 12:00:07.100 | Build completed successfully',
];

test('progress grows over the lines of a build', () => {
  const seen = LINES.map((line) => progressOfLine(line));
  assert.ok(seen.every((done) => done !== undefined));
  assert.deepEqual(
    seen,
    seen.toSorted((one = 0, other = 0) => one - other),
  );
  assert.equal(seen.at(-1), 100);
});

test('other lines tell nothing', () => {
  for (const line of [
    '',
    'Setting up libc6',
    'dib-run-parts Sourcing environment file',
    'echo Build completed successfully',
    '+ echo dib-run-parts Running hooks/root.d',
  ]) {
    assert.equal(progressOfLine(line), undefined, line);
  }
});
