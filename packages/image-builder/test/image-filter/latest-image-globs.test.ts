import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesGlob } from '../../src/image-filter/image-filter.ts';

const CASES: readonly [pattern: string, matching: readonly string[], others: readonly string[]][] = [
  ['debian', ['debian'], ['debian-1', 'a debian', 'Debian', '']],
  ['debian-*', ['debian-', 'debian-1', 'debian-*'], ['debian', 'a-debian-1', 'DEBIAN-1']],
  ['*-raw', ['-raw', 'a-raw', 'a-raw-raw'], ['a-raw-', 'raw']],
  ['a*b*c', ['abc', 'a-b-c', 'abbcc', 'abcbc'], ['acb', 'ab']],
  ['v?.?', ['v1.2', 'v\u{1f600}.x'], ['v10.2', 'v.2', 'v1.']],
  ['?*', ['a', 'ab'], ['']],
  ['*', ['', 'a'], []],
  ['', [''], ['a']],
  ['a.c+[x]', ['a.c+[x]'], ['abc+[x]', 'a.ccx']],
];

for (const [pattern, matching, others] of CASES) {
  test(`the glob "${pattern}" is matched with whole names`, () => {
    assert.deepEqual(
      [...matching, ...others].filter((text) => matchesGlob(text, pattern)),
      matching,
    );
  });
}

test('a glob with many stars is matched in linear time', () => {
  // The time of other processes does not count.
  const begun = process.cpuUsage();
  assert.equal(matchesGlob('a'.repeat(5000), `${'*a'.repeat(50)}*b`), false);
  const { user } = process.cpuUsage(begun);
  assert.ok(user < 1_000_000, `${user} µs`);
});
