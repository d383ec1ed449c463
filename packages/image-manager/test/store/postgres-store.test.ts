// Only in test:all: it needs PostgreSQL.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { Client } from 'pg';
import { type Postgresql, startPostgresql } from '../../../../test/fixtures/postgresql.ts';
import { openStateStore } from '../../src/store/stores.ts';
import { LeaderProcess } from './leader.ts';
import { build } from './records.ts';
import { startRelay } from './relay.ts';
import { openUntilEnd, stateStoreContract, withCode } from './state-store-contract.ts';

let server: Postgresql;
before(async () => {
  server = await startPostgresql();
});
after(() => server.stop());

stateStoreContract(
  'PostgreSQL',
  () => server.createDatabase(),
  async (location, sql) => {
    const client = new Client(location);
    await client.connect();
    try {
      await client.query(`set search_path to image_manager; ${sql}`);
    } finally {
      await client.end();
    }
  },
);

/** Connects as an administrator of the database. */
async function connectTo(t: TestContext, location: string): Promise<Client> {
  const client = new Client(location);
  await client.connect();
  t.after(() => client.end());
  return client;
}

/** Returns the milliseconds until an event. */
async function timed(t: TestContext, what: string, event: Promise<unknown>): Promise<void> {
  const start = performance.now();
  await event;
  t.diagnostic(`${what} after ${Math.round(performance.now() - start)} ms`);
}

describe('PostgreSQL: a leader that lost its connection', () => {
  it('a PostgreSQL leader notices that an administrator ended its session, and is elected again', async (t) => {
    const location = await server.createDatabase();
    const store = await openUntilEnd(t, location);
    const leadership = await store.lead();
    const lost = once(leadership.lost, 'abort');
    const admin = await connectTo(t, location);
    const { rowCount } = await admin.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted`,
    );
    assert.equal(rowCount, 1);
    await lost;
    withCode('store-unreachable')(leadership.lost.reason);
    await assert.rejects(leadership.write({ builds: [build(store.owner, 1)] }), withCode('not-leader'));
    await assert.rejects(leadership.takeNumbers(1), withCode('not-leader'));
    assert.equal((await store.read()).builds.size, 0);
    const again = await store.lead();
    await leadership.release();
    await again.write({ builds: [build(store.owner, 1)] });
  });

  it('a PostgreSQL leader and a standby are elected again after a restart of the server', async (t) => {
    const location = await server.createDatabase();
    const store = await openUntilEnd(t, location);
    const other = await openUntilEnd(t, location);
    const leadership = await store.lead();
    await leadership.write({ builds: [build(store.owner, await leadership.takeNumbers(1))] });
    await store.read();
    const lost = once(leadership.lost, 'abort');
    const { promise: standby, resolve: onStandby } = Promise.withResolvers<void>();
    const waiting = assert.rejects(other.lead({ onStandby }), withCode('store-unreachable'));
    await standby;
    await server.kill();
    await lost;
    await waiting;
    await assert.rejects(store.read(), withCode('store-unreachable'));
    await assert.rejects(store.lead(), withCode('store-unreachable'));
    await server.restart();
    assert.equal((await store.read()).builds.size, 1);
    const again = await other.lead();
    assert.equal(await again.takeNumbers(1), 2);
  });

  it('a PostgreSQL leader gives up before another is elected when the network breaks', async (t) => {
    const location = await server.createDatabase();
    const relay = await startRelay(t, join(server.directory, '.s.PGSQL.5432'));
    const { pathname } = new URL(location.replace('postgres@/', 'postgres@localhost/'));
    const store = await openUntilEnd(t, `postgresql://postgres@127.0.0.1:${relay.port}${pathname}`);
    const other = await openUntilEnd(t, location);
    const leadership = await store.lead();
    await leadership.takeNumbers(1);
    const waiting = other.lead();
    relay.fallSilent();
    const lost = timed(t, 'lost', once(leadership.lost, 'abort'));
    await timed(t, 'another was elected', waiting);
    assert.equal(leadership.lost.aborted, true);
    await lost;
    await assert.rejects(leadership.write({ builds: [build(store.owner, 1)] }), withCode('not-leader'));
  });

  it('a PostgreSQL leader cannot write when it continues after SIGSTOP during a write', async (t) => {
    const location = await server.createDatabase();
    const store = await openUntilEnd(t, location);
    const leader = LeaderProcess.start(t, location);
    assert.equal(await leader.says('leads'), store.owner);
    for (let batch = 1; batch <= 5; batch += 1) assert.equal(await leader.says('wrote'), String(batch));
    leader.child.kill('SIGSTOP');
    const waiting = store.lead();
    await timed(t, 'another was elected', waiting);
    const leadership = await waiting;
    await leadership.write({ builds: [build(store.owner, await leadership.takeNumbers(1))] });
    const state = await store.read();
    const exited = once(leader.child, 'exit');
    leader.child.kill('SIGCONT');
    assert.match(String(await leader.says('refused')), /^(not-leader|store-not-usable|store-unreachable)$/);
    await exited;
    assert.deepEqual(await store.read(), state);
  });

  it('a PostgreSQL leader is replaced when its statement waits for a lock', async (t) => {
    const location = await server.createDatabase();
    const store = await openUntilEnd(t, location);
    const other = await openUntilEnd(t, location);
    const leadership = await store.lead();
    const admin = await connectTo(t, location);
    await admin.query('begin; lock table image_manager.builds');
    const refused = assert.rejects(
      leadership.write({ builds: [build(store.owner, 1)] }),
      withCode('store-not-usable'),
    );
    await timed(t, 'another was elected', other.lead());
    await refused;
    assert.equal(leadership.lost.aborted, true);
    await admin.query('rollback');
    assert.equal((await other.read()).builds.size, 0);
  });
});

describe('PostgreSQL: a database that cannot be used', () => {
  it('a PostgreSQL store is rejected if a later release wrote it', async (t) => {
    const location = await server.createDatabase();
    await (await openStateStore(location)).close();
    const admin = await connectTo(t, location);
    await admin.query('update image_manager.settings set schema_version = schema_version + 1');
    await assert.rejects(openStateStore(location), withCode('store-too-new'));
  });

  it('a PostgreSQL store that cannot be used is rejected with an error without the password', async () => {
    const socket = encodeURIComponent(server.directory);
    for (const [location, code, reason] of [
      [
        'postgresql://manager:s3cret@127.0.0.1:1/images',
        'store-unreachable',
        /"images" at 127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/,
      ],
      ['postgresql://manager:s3cret@/images?host=/none', 'store-unreachable', /check that it runs/],
      [`postgresql://postgres:s3cret@/none?host=${socket}`, 'store-not-usable', /create it with createdb/],
      [`postgresql://nobody:s3cret@/postgres?host=${socket}`, 'store-refused', /check user and password/],
      ['postgresql://manager:s3cret@host:port/images', 'store-not-usable', /it is not a URL/],
      ['postgresql://manager:s3cret@host/images?sslmode=verify-ca', 'store-not-usable', /sslrootcert/],
    ] as const) {
      await assert.rejects(openStateStore(location), (error: Error) => {
        assert.match(error.message, reason);
        assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }), /s3cret/);
        return withCode(code)(error);
      });
    }
  });

  it('a PostgreSQL store needs the right to create a schema, or ownership of the schema', async (t) => {
    const location = await server.createDatabase();
    const admin = await connectTo(t, location);
    await admin.query('drop role if exists manager; create role manager login');
    const own = location.replace('postgres@', 'manager@');
    await assert.rejects(openStateStore(own), /allow this user to create a schema/);
    await admin.query('create schema image_manager authorization manager');
    const store = await openUntilEnd(t, own);
    await (await store.lead()).takeNumbers(1);
  });
});
