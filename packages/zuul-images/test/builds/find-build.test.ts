import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { qcowArtifact } from '../../../../test/fixtures/zuul/build-table.ts';
import { type BuildSource, findBuild } from '../../src/builds/find-build.ts';
import { EMPTY_HISTORY, withTaken } from '../../src/builds/processed-history.ts';
import { ApiFixture, ON, QUERY, startZuul } from '../api/api-fixture.ts';

const SOURCE: BuildSource = {
  query: QUERY,
  rules: { imageName: 'ubuntu-noble', artifacts: [{ format: 'qcow2', type: 'image-qcow' }] },
};

const HOUR = 3_600_000;
const EPOCH = Date.parse('2026-01-01T00:00:00Z');

function at(hours: number): Date {
  return new Date(EPOCH + hours * HOUR);
}

describe('looking for the newest build', () => {
  test('reads on while one that began earlier may have ended later', async (t) => {
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

  test('reads no further than a day before the newest', async (t) => {
    const zuul = await startZuul(t);
    const rows = Array.from({ length: 120 }, (_, hours) =>
      zuul.table().add([qcowArtifact(`${hours}`)], { start: at(hours) }, { end: at(hours + 1) }),
    );
    const { api } = new ApiFixture(zuul);
    const { chosen } = await findBuild(api, SOURCE, EMPTY_HISTORY, ON);
    assert.equal(chosen?.build.uuid, rows.at(-1)?.uuid);
    assert.equal(zuul.listings.length, 1);
    assert.ok(chosen !== undefined);
    assert.equal((await findBuild(api, SOURCE, withTaken(EMPTY_HISTORY, chosen), ON)).chosen, undefined);
    assert.equal(zuul.listings.length, 2);
  });

  test('reads on where the newest builds do not have the image', async (t) => {
    const zuul = await startZuul(t);
    const good = zuul.table().add([qcowArtifact('good')], { start: at(0) }, { end: at(1) });
    for (let hours = 100; hours < 160; hours += 1)
      zuul.table().add([], { start: at(hours) }, { end: at(hours + 1) });
    const { chosen } = await findBuild(new ApiFixture(zuul).api, SOURCE, EMPTY_HISTORY, ON);
    assert.equal(chosen?.build.uuid, good.uuid);
  });
});
