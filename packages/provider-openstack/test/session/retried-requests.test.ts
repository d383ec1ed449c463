import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { failsWith } from '../fixtures/fails-with.ts';
import { plainClient } from '../fixtures/plain-client.ts';

const UNAVAILABLE = { status: 503 };

function oneByte(): Readable {
  return Readable.from([Buffer.from('x')]);
}

describe('a request that fails', () => {
  it('a failed cloud request is repeated if it is idempotent', async (t) => {
    const { client, clock } = await plainClient(t, UNAVAILABLE, { status: 500 }, { status: 204 });
    assert.equal((await client.json('DELETE', '/images/1')).status, 204);
    assert.deepEqual(clock.sleeps, [1000, 2000]);
  });

  it('a failed cloud request is repeated after a connection reset', async (t) => {
    const { client, http } = await plainClient(t);
    let resets = 0;
    http.reply((_request, raw) => {
      if (resets === 2) return { status: 200 };
      resets += 1;
      raw.socket.resetAndDestroy();
      return undefined;
    });
    assert.equal((await client.json('GET', '/images')).status, 200);
    assert.equal(resets, 2);
  });

  it('a failed POST to a cloud is not repeated, as it may have had an effect', async (t) => {
    for (const first of [UNAVAILABLE, { status: 500 }, { status: 504 }]) {
      const { client, http } = await plainClient(t, first, { status: 201 });
      await assert.rejects(client.json('POST', '/images', { body: {} }), failsWith('service-unavailable'));
      assert.equal(http.requests.length, 1);
    }
  });

  it('a failed POST to a cloud is repeated if it allows a replay', async (t) => {
    const { client } = await plainClient(t, { status: 500 }, { status: 202 });
    assert.equal((await client.json('POST', '/images/1/import', { body: {}, replay: true })).status, 202);
  });

  it('a failed POST to a cloud is repeated if the cloud requested a retry', async (t) => {
    const wait = { 'retry-after': '9' };
    const { client, clock } = await plainClient(
      t,
      { status: 429 },
      { status: 503, headers: wait },
      { status: 201 },
    );
    assert.equal((await client.json('POST', '/images', { body: {} })).status, 201);
    assert.deepEqual(clock.sleeps, [1000, 9000]);
  });

  it('a POST to a cloud that was never sent is repeated', async (t) => {
    const { client, http, clock } = await plainClient(t, { status: 201 });
    await http[Symbol.asyncDispose]();
    await assert.rejects(client.json('POST', '/images', { body: {} }), failsWith('connection-failed'));
    assert.equal(clock.sleeps.length, 5);
  });

  it('a failed PUT of a stream to a cloud is not repeated', async (t) => {
    const { client, http } = await plainClient(t, UNAVAILABLE, { status: 204 });
    await assert.rejects(
      client.put('/images/1/file', oneByte, { size: 1 }),
      failsWith('service-unavailable'),
    );
    assert.equal(http.requests.length, 1);
  });
});
