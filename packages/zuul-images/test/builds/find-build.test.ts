import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { qcowArtifact } from '../../../../test/fixtures/zuul/build-table.ts';
import { QUERY, startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import { findBuild, findNamedBuild, type ImageSource } from '../../src/builds/find-build.ts';
import { EMPTY_HISTORY, withImported } from '../../src/builds/processed-builds.ts';
import { ApiFixture, ON } from '../api/api-fixture.ts';

const SOURCE: ImageSource = {
  ...QUERY,
  name: 'ubuntu-noble',
  artifacts: [{ format: 'qcow2', type: 'image-qcow' }],
  'require-sha256': false,
};

const HOUR = 3_600_000;
const EPOCH = Date.parse('2025-01-01T00:00:00Z');

function at(hours: number): Date {
  return new Date(EPOCH + hours * HOUR);
}

describe('finding the newest build', () => {
  test('the search for a build reads further pages while an earlier started build may have ended later', async (t) => {
    const zuul = await startZuul(t);
    const late = zuul.table().begin({ start: at(0) });
    for (let count = 1; count <= 60; count += 1) {
      const times = { start: at(count / 60), end: at(1 + count / 60) };
      zuul.table().add([qcowArtifact(`${count}`)], { start: times.start }, { end: times.end });
    }
    zuul.table().end(late, { end: at(20), artifacts: [qcowArtifact('late')] });
    const { chosen } = await findBuild(new ApiFixture(zuul).api, SOURCE, EMPTY_HISTORY, ON);
    assert.equal(chosen?.build.uuid, late.uuid);
  });

  test('the search for a build stops a day before the newest build', async (t) => {
    const zuul = await startZuul(t);
    const rows = Array.from({ length: 120 }, (_, hours) =>
      zuul.table().add([qcowArtifact(`${hours}`)], { start: at(hours) }, { end: at(hours + 1) }),
    );
    const { api } = new ApiFixture(zuul);
    const { chosen } = await findBuild(api, SOURCE, EMPTY_HISTORY, ON);
    assert.equal(chosen?.build.uuid, rows.at(-1)?.uuid);
    assert.equal(zuul.listings.length, 1);
    assert.ok(chosen !== undefined);
    assert.equal((await findBuild(api, SOURCE, withImported(EMPTY_HISTORY, chosen), ON)).chosen, undefined);
    assert.equal(zuul.listings.length, 2);
  });

  test('the search for a build reads further pages while the newest builds do not have the image', async (t) => {
    const zuul = await startZuul(t);
    const good = zuul.table().add([qcowArtifact('good')], { start: at(0) }, { end: at(1) });
    for (let hours = 100; hours < 160; hours += 1)
      zuul.table().add([], { start: at(hours) }, { end: at(hours + 1) });
    const { chosen } = await findBuild(new ApiFixture(zuul).api, SOURCE, EMPTY_HISTORY, ON);
    assert.equal(chosen?.build.uuid, good.uuid);
  });
});

describe('finding a named build', () => {
  test('the search for a named build finds it on a later page, and reads no further page', async (t) => {
    const zuul = await startZuul(t);
    const rows = Array.from({ length: 120 }, () => zuul.table().add());
    const { api } = new ApiFixture(zuul);
    const [wanted] = rows.slice(60);
    assert.ok(wanted?.end);
    const build = await findNamedBuild(api, QUERY, { uuid: wanted.uuid, endTime: wanted.end.getTime() }, ON);
    assert.equal(build?.uuid, wanted.uuid);
    assert.equal(zuul.listings.length, 2);
  });

  test('the search for a named build stops a day before its end if it is not listed', async (t) => {
    const zuul = await startZuul(t);
    for (let hours = 0; hours < 120; hours += 1) {
      const [start, end] = [at(hours), at(hours + 1)];
      zuul.table().add([], { start }, { end });
    }
    const { api } = new ApiFixture(zuul);
    const missing = { uuid: '0'.repeat(32), endTime: EPOCH + 119 * HOUR };
    assert.equal(await findNamedBuild(api, QUERY, missing, ON), undefined);
    assert.equal(zuul.listings.length, 1);
  });

  test('the search for a named build reads all pages if its end is in the future', async (t) => {
    const zuul = await startZuul(t);
    const start = new Date(EPOCH);
    const { uuid } = zuul.table().add([], { start }, { end: new Date('2100-01-01T00:00:00Z') });
    for (let count = 0; count < 60; count += 1) zuul.table().add([], { start }, { end: start });
    const { api } = new ApiFixture(zuul);
    const endTime = Date.parse('2100-01-01T00:00:00Z');
    assert.equal((await findNamedBuild(api, QUERY, { uuid, endTime }, ON))?.uuid, uuid);
  });

  test('the search for a named build does not find another job’s build', async (t) => {
    const zuul = await startZuul(t);
    const { uuid, end } = zuul.table().add([], { job: 'build-debian-image' });
    const { api } = new ApiFixture(zuul);
    assert.equal(await findNamedBuild(api, QUERY, { uuid, endTime: end?.getTime() ?? 0 }, ON), undefined);
  });
});
