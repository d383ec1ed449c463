import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ZuulArtifact, ZuulBuild } from '../../src/api/zuul-build.ts';
import { chooseBuild } from '../../src/builds/find-build.ts';
import type { ImageRules } from '../../src/builds/image-artifact.ts';
import { EMPTY_HISTORY, type ProcessedHistory, withImported } from '../../src/builds/processed-builds.ts';
import { makeBuild } from '../api/make-build.ts';

const RULES: ImageRules = {
  name: 'noble',
  artifacts: [{ format: 'qcow2', type: 'image-qcow' }],
  'require-sha256': false,
};

function image(url: string, digit?: string): readonly ZuulArtifact[] {
  const sha256 = digit === undefined ? {} : { sha256: digit.repeat(64) };
  return [{ name: 'qcow2 image', url: `https://images/${url}`, metadata: { type: 'image-qcow', ...sha256 } }];
}

function build(id: number, more: Partial<ZuulBuild> = {}): ZuulBuild {
  return makeBuild({ id, artifacts: image(`${id}`), ...more });
}

/** Returns the number of the chosen build. */
function chosenOf(
  builds: readonly ZuulBuild[],
  history: ProcessedHistory = EMPTY_HISTORY,
): number | undefined {
  return chooseBuild(builds, RULES, history).chosen?.build.id;
}

/** Returns the history after the chosen build was imported. */
function after(...builds: readonly ZuulBuild[]): ProcessedHistory {
  const { chosen } = chooseBuild(builds, RULES, EMPTY_HISTORY);
  assert.ok(chosen !== undefined);
  return withImported(EMPTY_HISTORY, chosen);
}

describe('the chosen build', () => {
  test('the chosen build is the one that ended last, not the one that started last', () => {
    const early = build(1, { endTime: 9000 });
    const late = build(2, { endTime: 5000 });
    assert.equal(chosenOf([late, early]), 1);
  });

  test('the chosen build has the higher number if two ended in the same second', () => {
    assert.equal(chosenOf([build(3, { endTime: 5000 }), build(2, { endTime: 5000 })]), 3);
  });

  test('the chosen build ended after the imported ones, even if it started earlier', () => {
    const history = after(build(5, { endTime: 9000 }));
    assert.equal(chosenOf([build(4, { endTime: 9500 })], history), 4);
    assert.equal(chosenOf([build(6, { endTime: 8000 })], history), undefined);
  });

  test('the chosen build counts as ended now if its end is in the future, so that later builds are newer', () => {
    const now = Date.UTC(2026, 4, 1);
    const ahead = build(1, { endTime: Date.UTC(2036, 0, 1) });
    const first = chooseBuild([ahead], RULES, EMPTY_HISTORY, now).chosen;
    assert.ok(first !== undefined);
    const history = withImported(EMPTY_HISTORY, first);
    const later = build(2, { endTime: now + 60_000 });
    assert.equal(chooseBuild([ahead, later], RULES, history, now + 120_000).chosen?.build.id, 2);
  });

  test('the chosen build was not processed before', () => {
    const only = build(1);
    assert.equal(chosenOf([only], after(only)), undefined);
  });

  test('the chosen build has ended, and has the image', () => {
    const { endTime: _, ...unended } = build(3);
    const builds = [
      unended,
      build(4, { artifacts: [{ name: 'logs', url: 'https://logs', metadata: { type: 'docs_site' } }] }),
    ];
    const { unusable } = chooseBuild(builds, RULES, EMPTY_HISTORY);
    assert.deepEqual(
      unusable.map(({ build: { id }, reason }) => [id, reason]),
      [
        [3, 'Zuul does not report when it ended'],
        [4, 'none of its artifacts is the image'],
      ],
    );
    assert.equal(chosenOf(builds), undefined);
  });

  test('the chosen build’s artifacts have signatures, and its record does not', () => {
    const { chosen } = chooseBuild(
      [build(1, { artifacts: image('a?signature=1', 'a') })],
      RULES,
      EMPTY_HISTORY,
    );
    assert.deepEqual(chosen?.artifacts, [
      { format: 'qcow2', url: 'https://images/a?signature=1', sha256: 'a'.repeat(64) },
    ]);
    assert.deepEqual(chosen?.same[0].content, [
      { format: 'qcow2', url: 'https://images/a', sha256: 'a'.repeat(64) },
    ]);
  });
});

describe('an image that several builds return', () => {
  const gate = build(1, { pipeline: 'gate', artifacts: image('1', 'a') });
  const promoted = build(3, { pipeline: 'promote', artifacts: image('copy', 'a') });

  test('an image that several builds return is not imported again', () => {
    assert.equal(chosenOf([promoted, gate], after(gate)), undefined);
  });

  test('an image that several builds return is as old as the first of them', () => {
    const between = build(2, { artifacts: image('2', 'b') });
    assert.equal(chosenOf([promoted, between, gate]), 2);
  });

  test('an image that several builds return is recorded with all of them', () => {
    const { chosen } = chooseBuild([promoted, gate], RULES, EMPTY_HISTORY);
    assert.deepEqual(
      chosen?.same.map(({ id }) => id),
      [1, 3],
    );
    const next = chooseBuild([promoted, build(4)], RULES, after(gate));
    assert.deepEqual(
      next.chosen?.passedOver.map(({ id }) => id),
      [3],
    );
  });

  test('an image that several builds return is as old as the first of them, even if that was passed over', () => {
    const passedOver = after(build(2), gate);
    assert.equal(chosenOf([promoted], passedOver), undefined);
  });

  test('an image that several builds return is as old as the first of them, even if that was not processed', () => {
    assert.equal(chosenOf([promoted, gate], after(build(2))), undefined);
  });

  test('an image without a digest is recognized by its URL, with any signature', () => {
    const original = build(1, { pipeline: 'gate', artifacts: image('same?sig=1') });
    const again = build(2, { pipeline: 'promote', artifacts: image('same?sig=2', 'a') });
    assert.equal(chosenOf([again], after(original)), undefined);
  });

  test('an image differs from another at the same URL with another digest', () => {
    const first = build(1, { artifacts: image('latest', 'a') });
    assert.equal(chosenOf([build(2, { artifacts: image('latest', 'b') })], after(first)), 2);
    const unhashed = build(1, { artifacts: image('latest') });
    assert.equal(chosenOf([build(2, { artifacts: image('latest') })], after(unhashed)), 2);
  });
});
