import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type BuildStart, qcowArtifact } from '../../../../test/fixtures/zuul/build-table.ts';
import { QUERY, startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import { ZUUL_RELEASES, type ZuulVersion } from '../../../../test/fixtures/zuul/zuul-release.ts';
import { ApiFixture, ON } from './api-fixture.ts';
import { zuulFailure } from './zuul-failure.ts';

const VERSIONS = Object.keys(ZUUL_RELEASES) as ZuulVersion[];

/** Builds that each differ from the query in one value. */
const OTHERS: readonly BuildStart[] = [
  { project: 'opendev/other' },
  { project: 'opendev.org/opendev/system-config' },
  { pipeline: 'check' },
  { job: 'build-debian-image' },
];

describe('the builds of a job', () => {
  for (const version of VERSIONS) {
    test(`a job’s builds are listed by Zuul ${version}`, async (t) => {
      const zuul = await startZuul(t, { version });
      const table = zuul.table();
      for (const other of OTHERS) table.add([], other);
      const first = table.add([qcowArtifact('one')]);
      table.begin();
      table.add([], {}, { result: 'FAILURE' });
      table.add([], {}, { result: 'RETRY', final: false });
      const tagged = table.add([], { pipeline: 'post', branch: null });

      const builds = await new ApiFixture(zuul).builds();
      assert.deepEqual(
        builds.map(({ uuid }) => uuid),
        [tagged.uuid, first.uuid],
      );
      const [, build] = builds;
      assert.equal(build?.endTime, first.end?.getTime());
      assert.equal(build?.project, first.project);
      assert.equal(build?.branch, first.branch);
      assert.deepEqual(build?.artifacts, first.artifacts);
    });
  }

  test('a job’s builds are filtered by Zuul, with each flag once and the pipelines as alternatives', async (t) => {
    const zuul = await startZuul(t);
    await new ApiFixture(zuul).builds({ ...QUERY, branch: 'master' });
    assert.equal(
      zuul.listings[0]?.query.toString(),
      'project=opendev%2Fsystem-config&job_name=build-ubuntu-noble-image&pipeline=periodic&pipeline=post' +
        '&branch=master&result=SUCCESS&complete=true&final=true&limit=50&skip=0',
    );
  });

  test('a job’s builds may be limited to one branch', async (t) => {
    const zuul = await startZuul(t);
    zuul.table().add([], { branch: 'stable' });
    const wanted = zuul.table().add();
    assert.deepEqual(await new ApiFixture(zuul).uuids({ ...QUERY, branch: 'master' }), [wanted.uuid]);
  });

  test('a job’s builds are also filtered here, in case a proxy drops a parameter', async (t) => {
    const zuul = await startZuul(t);
    for (const other of [...OTHERS, { branch: 'stable' }]) zuul.table().add([], other);
    zuul.table().begin();
    zuul.table().add([], {}, { result: 'FAILURE' });
    zuul.table().add([], {}, { final: false });
    const wanted = zuul.table().add();
    for (const name of ['project', 'pipeline', 'job_name', 'branch', 'result', 'complete', 'final']) {
      zuul.dropped.add(name);
    }
    assert.deepEqual(await new ApiFixture(zuul).uuids({ ...QUERY, branch: 'master' }), [wanted.uuid]);
  });

  test('a job’s builds match names exactly, although Zuul takes a star as a wildcard', async (t) => {
    const zuul = await startZuul(t);
    zuul.table().add();
    assert.deepEqual(await new ApiFixture(zuul).uuids({ ...QUERY, job: 'build-*' }), []);
  });
});

describe('pages', () => {
  test('pages of builds are read until one is shorter than the limit', async (t) => {
    const zuul = await startZuul(t);
    const uuids = Array.from({ length: 120 }, () => zuul.table().add().uuid).toReversed();
    assert.deepEqual(await new ApiFixture(zuul).uuids(), uuids);
    assert.deepEqual(
      zuul.listings.map(({ query }) => query.get('skip')),
      ['0', '50', '100'],
    );
  });

  test('pages of builds are read on demand', async (t) => {
    const zuul = await startZuul(t);
    for (let count = 0; count < 120; count += 1) zuul.table().add();
    for await (const page of new ApiFixture(zuul).api.builds(QUERY, ON)) {
      assert.equal(page.length, 50);
      break;
    }
    assert.equal(zuul.listings.length, 1);
  });

  test('pages of builds end with an empty one after a full one', async (t) => {
    const zuul = await startZuul(t);
    for (let count = 0; count < 50; count += 1) zuul.table().add();
    assert.equal((await new ApiFixture(zuul).builds()).length, 50);
    assert.equal(zuul.listings.length, 2);
  });

  test('pages of builds contain each build once, although builds end between two requests', async (t) => {
    const zuul = await startZuul(t);
    const rows = Array.from({ length: 80 }, () => zuul.table().add());
    const uuids: string[] = [];
    for await (const page of new ApiFixture(zuul).api.builds(QUERY, ON)) {
      uuids.push(...page.map(({ uuid }) => uuid));
      if (zuul.listings.length === 1) for (let count = 0; count < 5; count += 1) zuul.table().add();
    }
    assert.deepEqual(uuids, rows.map(({ uuid }) => uuid).toReversed());
  });

  test('a list of builds whose pages are all the same causes an error', async (t) => {
    const zuul = await startZuul(t);
    for (let count = 0; count < 50; count += 1) zuul.table().add();
    zuul.dropped.add('skip');
    await assert.rejects(new ApiFixture(zuul).builds(), zuulFailure('invalid-response', 'on every page'));
  });
});

describe('an old server', () => {
  for (const [version, parameters] of [
    ['3.8', []],
    ['4.0', ['final']],
    ['11.3', ['complete', 'final']],
  ] as const) {
    test(`a Zuul server of release ${version} gets only parameters that it knows, after the first request`, async (t) => {
      const zuul = await startZuul(t, { version });
      const build = zuul.table().add();
      const fixture = new ApiFixture(zuul);
      assert.deepEqual(await fixture.uuids(), [build.uuid]);
      const before = zuul.listings.length;
      await fixture.uuids();
      const [again] = zuul.listings.slice(before);
      assert.equal(zuul.listings.length, before + 1);
      assert.deepEqual(
        ['complete', 'final'].filter((name) => again?.query.has(name)),
        parameters,
      );
    });
  }
});
