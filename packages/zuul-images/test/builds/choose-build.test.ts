import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ZuulArtifact, ZuulBuild } from '../../src/api/zuul-build.ts';
import { chooseBuild, type Refusal } from '../../src/builds/choose-build.ts';
import type { ImageRules } from '../../src/builds/image-artifact.ts';
import { EMPTY_HISTORY, type ProcessedHistory, withTaken } from '../../src/builds/processed-history.ts';
import { makeBuild } from '../api/make-build.ts';

const RULES: ImageRules = { imageName: 'noble', artifacts: [{ format: 'qcow2', type: 'image-qcow' }] };

function image(url: string, digit?: string): readonly ZuulArtifact[] {
  const sha256 = digit === undefined ? {} : { sha256: digit.repeat(64) };
  return [{ name: 'qcow2 image', url: `https://images/${url}`, metadata: { type: 'image-qcow', ...sha256 } }];
}

function build(id: number, more: Partial<ZuulBuild> = {}): ZuulBuild {
  return makeBuild({ id, artifacts: image(`${id}`), ...more });
}

interface Outcome {
  readonly chosen: number | undefined;
  readonly refused: Readonly<Record<number, Refusal>>;
}

function outcome(builds: readonly ZuulBuild[], history: ProcessedHistory = EMPTY_HISTORY): Outcome {
  const { chosen, refused } = chooseBuild(builds, RULES, history);
  return {
    chosen: chosen?.build.id,
    refused: Object.fromEntries(refused.map(({ build: { id }, refusal }) => [id, refusal])),
  };
}

/** The history after the chosen build's image was taken. */
function after(...builds: readonly ZuulBuild[]): ProcessedHistory {
  const { chosen } = chooseBuild(builds, RULES, EMPTY_HISTORY);
  assert.ok(chosen !== undefined);
  return withTaken(EMPTY_HISTORY, chosen);
}

describe('the build whose image is taken', () => {
  test('is the one that ended last, not the one that began last', () => {
    const early = build(1, { endTime: 9000 });
    const late = build(2, { endTime: 5000 });
    assert.deepEqual(outcome([late, early]), { chosen: 1, refused: { 2: 'superseded' } });
  });

  test('is the one with the higher number of two that ended in the same second', () => {
    assert.equal(outcome([build(3, { endTime: 5000 }), build(2, { endTime: 5000 })]).chosen, 3);
  });

  test('ended after those that were taken before, even if it began earlier', () => {
    const history = after(build(5, { endTime: 9000 }));
    assert.equal(outcome([build(4, { endTime: 9500 })], history).chosen, 4);
    assert.deepEqual(outcome([build(6, { endTime: 8000 })], history), {
      chosen: undefined,
      refused: { 6: 'older' },
    });
  });

  test('with an end in the future counts as built now, so that later builds are newer', () => {
    const now = Date.UTC(2026, 4, 1);
    const ahead = build(1, { endTime: Date.UTC(2036, 0, 1) });
    const first = chooseBuild([ahead], RULES, EMPTY_HISTORY, now).chosen;
    assert.ok(first !== undefined);
    const history = withTaken(EMPTY_HISTORY, first);
    const later = build(2, { endTime: now + 60_000 });
    assert.equal(chooseBuild([ahead, later], RULES, history, now + 120_000).chosen?.build.id, 2);
  });

  test('is none that was seen', () => {
    const only = build(1);
    assert.deepEqual(outcome([only], after(only)), { chosen: undefined, refused: { 1: 'seen' } });
  });

  test('succeeded, was not tried again, has ended, and has the image', () => {
    const { endTime: _, ...unended } = build(3);
    const builds = [
      build(1, { result: 'FAILURE' }),
      build(2, { final: false }),
      unended,
      build(4, { artifacts: [{ name: 'logs', url: 'https://logs', metadata: { type: 'docs_site' } }] }),
    ];
    assert.deepEqual(outcome(builds), {
      chosen: undefined,
      refused: { 1: 'unsuccessful', 2: 'unsuccessful', 3: 'unfinished', 4: 'unusable' },
    });
  });

  test('is told with what it is to be fetched from', () => {
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

  test('that cannot be had says why', () => {
    const { refused } = chooseBuild(
      [build(1, { artifacts: [], unusableArtifacts: ['artifact "x": its URL is relative'] })],
      RULES,
      EMPTY_HISTORY,
    );
    assert.equal(refused[0]?.detail, 'artifact "x": its URL is relative');
  });
});

describe('an image that another build returns again', () => {
  const gate = build(1, { pipeline: 'gate', artifacts: image('1', 'a') });
  const promoted = build(3, { pipeline: 'promote', artifacts: image('copy', 'a') });

  test('is not taken again', () => {
    assert.deepEqual(outcome([promoted, gate], after(gate)), {
      chosen: undefined,
      refused: { 1: 'seen', 3: 'repeated' },
    });
  });

  test('is as old as the first build that returned it', () => {
    const between = build(2, { artifacts: image('2', 'b') });
    assert.deepEqual(outcome([promoted, between, gate]), {
      chosen: 2,
      refused: { 1: 'superseded', 3: 'repeated' },
    });
  });

  test('is remembered with all builds that returned it', () => {
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

  test('is as old as a build that was passed over before', () => {
    const passedOver = after(build(2), gate);
    assert.deepEqual(outcome([promoted], passedOver), { chosen: undefined, refused: { 3: 'repeated' } });
  });

  test('is as old as a build that ended before the one taken last, though it was not seen then', () => {
    assert.deepEqual(outcome([promoted, gate], after(build(2))), {
      chosen: undefined,
      refused: { 1: 'older', 3: 'repeated' },
    });
  });

  test('is known by its address where there is no checksum, whatever the signature', () => {
    const original = build(1, { pipeline: 'gate', artifacts: image('same?sig=1') });
    const again = build(2, { pipeline: 'promote', artifacts: image('same?sig=2', 'a') });
    assert.equal(outcome([again], after(original)).refused[2], 'repeated');
  });

  test('is not another image at the same address', () => {
    const first = build(1, { artifacts: image('latest', 'a') });
    assert.equal(outcome([build(2, { artifacts: image('latest', 'b') })], after(first)).chosen, 2);
    const unhashed = build(1, { artifacts: image('latest') });
    assert.equal(outcome([build(2, { artifacts: image('latest') })], after(unhashed)).chosen, 2);
  });
});
