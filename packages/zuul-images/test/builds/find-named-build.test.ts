import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findNamedBuild } from '../../src/zuul-artifact/wanted-builds.ts';
import { ApiFixture, ON, QUERY, startZuul } from '../api/api-fixture.ts';

const HOUR = 3_600_000;
const EPOCH = Date.parse('2025-01-01T00:00:00Z');

describe('looking for a build that is named', () => {
  test('it is found on a later page, and no page is read behind it', async (t) => {
    const zuul = await startZuul(t);
    const rows = Array.from({ length: 120 }, () => zuul.table().add());
    const { api } = new ApiFixture(zuul);
    const [wanted] = rows.slice(60);
    assert.ok(wanted?.end);
    const build = await findNamedBuild(api, QUERY, { uuid: wanted.uuid, endTime: wanted.end.getTime() }, ON);
    assert.equal(build?.uuid, wanted.uuid);
    assert.equal(zuul.listings.length, 2);
  });

  test('one that is not listed is not looked for further than a day before its end', async (t) => {
    const zuul = await startZuul(t);
    for (let hours = 0; hours < 120; hours += 1) {
      const [start, end] = [hours, hours + 1].map((at) => new Date(EPOCH + at * HOUR));
      if (start && end) zuul.table().add([], { start }, { end });
    }
    const { api } = new ApiFixture(zuul);
    const missing = { uuid: '0'.repeat(32), endTime: EPOCH + 119 * HOUR };
    assert.equal(await findNamedBuild(api, QUERY, missing, ON), undefined);
    assert.equal(zuul.listings.length, 1);
  });

  test('one with an end in the future is found on a later page, too', async (t) => {
    const zuul = await startZuul(t);
    const start = new Date(EPOCH);
    const { uuid } = zuul.table().add([], { start }, { end: new Date('2100-01-01T00:00:00Z') });
    for (let count = 0; count < 60; count += 1) zuul.table().add([], { start }, { end: start });
    const { api } = new ApiFixture(zuul);
    const endTime = Date.parse('2100-01-01T00:00:00Z');
    assert.equal((await findNamedBuild(api, QUERY, { uuid, endTime }, ON))?.uuid, uuid);
  });

  test('one of another job is none', async (t) => {
    const zuul = await startZuul(t);
    const { uuid, end } = zuul.table().add([], { job: 'build-debian-image' });
    const { api } = new ApiFixture(zuul);
    assert.equal(await findNamedBuild(api, QUERY, { uuid, endTime: end?.getTime() ?? 0 }, ON), undefined);
  });
});
