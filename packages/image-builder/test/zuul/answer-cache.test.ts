import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApiFixture, startZuul } from './api-fixture.ts';

describe('builds that did not change', () => {
  test('are not sent again where they have an ETag', async (t) => {
    const zuul = await startZuul(t, { validator: 'etag' });
    const first = zuul.table().add();
    const fixture = new ApiFixture(zuul);
    assert.deepEqual(await fixture.uuids(), [first.uuid]);
    assert.deepEqual(await fixture.uuids(), [first.uuid]);
    assert.match(zuul.listings[1]?.headers['if-none-match'] ?? '', /^"\w+"$/);
    const second = zuul.table().add();
    assert.deepEqual(await fixture.uuids(), [second.uuid, first.uuid]);
  });

  test('are not sent again where they have a time of change that is past', async (t) => {
    const zuul = await startZuul(t, { validator: 'last-modified' });
    zuul.lastModified = new Date(Date.now() - 60_000);
    const first = zuul.table().add();
    const fixture = new ApiFixture(zuul);
    await fixture.uuids();
    assert.deepEqual(await fixture.uuids(), [first.uuid]);
    assert.equal(zuul.listings[1]?.headers['if-modified-since'], zuul.lastModified.toUTCString());
  });

  test('are sent again where they may change in the second that is told', async (t) => {
    const zuul = await startZuul(t, { validator: 'last-modified' });
    zuul.lastModified = new Date();
    const first = zuul.table().add();
    const fixture = new ApiFixture(zuul);
    await fixture.uuids();
    const second = zuul.table().add();
    assert.deepEqual(await fixture.uuids(), [second.uuid, first.uuid]);
  });

  test('are sent again where there is no validator', async (t) => {
    const zuul = await startZuul(t);
    const fixture = new ApiFixture(zuul);
    await fixture.uuids();
    await fixture.uuids();
    const [, again] = zuul.listings;
    assert.deepEqual(
      Object.keys(again?.headers ?? {}).filter((name) => name.startsWith('if-')),
      [],
    );
  });

  test('do not outlive a failure', async (t) => {
    const zuul = await startZuul(t, { validator: 'etag' });
    const { uuid } = zuul.table().add();
    const fixture = new ApiFixture(zuul);
    await fixture.uuids();
    zuul.fail('internal-error');
    assert.deepEqual(await fixture.uuids(), [uuid]);
    assert.equal(zuul.listings[2]?.headers['if-none-match'], undefined);
  });
});
