import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseBuild } from '../../src/api/zuul-build.ts';

/** Build written by hand according to the API's documentation, independent of the double. */
const FLAT = {
  uuid: 'f00d',
  job_name: 'build-image',
  result: 'SUCCESS',
  start_time: '2025-08-03T17:34:46',
  end_time: '2025-08-03T18:00:00',
  log_url: 'https://logs.example.com/f00d/',
  artifacts: [{ name: 'qcow2 image', url: 'a.qcow2', metadata: { type: 'image-qcow' } }],
  project: 'opendev/system-config',
  branch: 'master',
  pipeline: 'periodic',
};

const { project, branch, ...COMMON } = FLAT;
const NESTED = { ...COMMON, _id: 7, final: false, ref: { project, branch, change: null } };

const NEUTRAL = {
  uuid: 'f00d',
  id: 0,
  jobName: 'build-image',
  result: 'SUCCESS',
  final: true,
  startTime: Date.UTC(2025, 7, 3, 17, 34, 46),
  endTime: Date.UTC(2025, 7, 3, 18),
  project,
  branch,
  pipeline: 'periodic',
  artifacts: [
    { name: 'qcow2 image', url: 'https://logs.example.com/f00d/a.qcow2', metadata: { type: 'image-qcow' } },
  ],
  unusableArtifacts: [],
};

describe('the JSON of a build', () => {
  test('a Zuul 3.8 build has neither _id nor final in its JSON', () =>
    assert.deepEqual(parseBuild(FLAT), NEUTRAL));

  test('a Zuul 10 build has a ref in its JSON', () => {
    assert.deepEqual(parseBuild(NESTED), { ...NEUTRAL, id: 7, final: false });
  });

  test('a build’s JSON names the change that was built, in either form', () => {
    const change = {
      change: 12,
      patchset: '3',
      ref: 'refs/changes/12/12/3',
      newrev: null,
      ref_url: 'https://x',
    };
    const expected = { change: '12', patchset: '3', ref: 'refs/changes/12/12/3', ref_url: 'https://x' };
    assert.deepEqual(parseBuild({ ...FLAT, ...change }).change, expected);
    assert.deepEqual(parseBuild({ ...NESTED, ref: { project, ...change } }).change, expected);
  });

  test('a build’s JSON may have a string as _id, as in the published schema', () => {
    assert.equal(parseBuild({ ...NESTED, _id: '12' }).id, 12);
  });

  test('a build’s JSON may describe a running build for a tag, without artifacts', () => {
    const build = parseBuild({
      ...COMMON,
      result: null,
      end_time: null,
      log_url: null,
      artifacts: [],
      ref: { project, branch: null },
    });
    assert.deepEqual(
      [build.result, build.endTime, build.branch, build.artifacts],
      [undefined, undefined, undefined, []],
    );
  });

  test('a build’s JSON may have times with a zone', () => {
    for (const time of ['2025-08-03T18:00:00Z', '2025-08-03T20:00:00+02:00']) {
      assert.equal(parseBuild({ ...FLAT, end_time: time }).endTime, NEUTRAL.endTime);
    }
  });

  test('a build’s JSON may have unusable artifacts next to others', () => {
    const artifacts = [
      { name: 'logs', url: 'file:///logs' },
      { name: 'no url' },
      null,
      { name: 'image', url: 's3://b/k' },
    ];
    const build = parseBuild({ ...FLAT, artifacts });
    assert.deepEqual(build.artifacts, [{ name: 'image', url: 's3://b/k', metadata: {} }]);
    assert.match(build.unusableArtifacts[0] ?? '', /^artifact "logs": .*file:/);
    assert.match(build.unusableArtifacts[1] ?? '', /^artifact "no url": url is missing/);
    assert.equal(build.unusableArtifacts.length, 3);
  });

  const faults: readonly (readonly [field: string, value: unknown])[] = [
    ['uuid', 1],
    ['_id', 'x'],
    ['job_name', null],
    ['end_time', 'yesterday'],
    ['artifacts', {}],
  ];
  for (const [field, value] of faults) {
    test(`a build’s JSON is rejected with ${JSON.stringify(value)} as ${field}`, () => {
      assert.throws(() => parseBuild({ ...FLAT, [field]: value }), new RegExp(`${field} is not`));
    });
  }
});

test('a build’s times are UTC in any time zone of the builder', () => {
  const module = JSON.stringify(join(import.meta.dirname, '../../src/api/zuul-build.ts'));
  const script = `import { parseBuild } from ${module}; console.log(parseBuild(${JSON.stringify(FLAT)}).endTime)`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, TZ: 'Pacific/Auckland' },
    encoding: 'utf8',
  });
  assert.equal(Number(printed), NEUTRAL.endTime);
});
