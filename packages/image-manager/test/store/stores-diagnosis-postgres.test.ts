// Only in test:all: it needs PostgreSQL.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { Client } from 'pg';
import { type Postgresql, startPostgresql } from '../../../../test/fixtures/postgresql.ts';
import { setUp } from '../../../../test/fixtures/set-up.ts';
import { diagnoseStore, openStateStore } from '../../src/store/stores.ts';

async function diagnose(location: string): Promise<readonly CheckResult[]> {
  return await Array.fromAsync(diagnoseStore(location, new AbortController().signal));
}

describe('diagnosis of a PostgreSQL store', () => {
  let server: Postgresql;
  setUp(async (undo) => {
    server = await startPostgresql();
    undo(() => server.stop());
  });

  test('the diagnosis of a PostgreSQL store reports its version and leader, and creates no table', async () => {
    const url = await server.createDatabase();
    const [empty] = await diagnose(url);
    assert.equal(empty?.status, 'ok');
    assert.match(empty.message, /^PostgreSQL database "test_\w+" at .* can be used; no manager has used it$/);
    const client = new Client(url);
    await client.connect();
    const { rows } = await client.query("select to_regnamespace('image_manager') as schema");
    await client.end();
    assert.deepEqual(rows, [{ schema: null }]);

    const store = await openStateStore(url);
    assert.deepEqual(
      (await diagnose(url)).map(({ status }) => status),
      ['ok', 'warning'],
    );
    await store.lead();
    const [, leader] = await diagnose(url);
    assert.deepEqual(
      [leader?.status, leader?.message],
      ['ok', 'a manager leads, on the host of the database'],
    );
    await store.close();
  });

  test('the diagnosis of a PostgreSQL store names a user without rights or an unreachable server, but no password', async () => {
    const url = await server.createDatabase();
    const client = new Client(url);
    await client.connect();
    await client.query(
      "do $$ begin if not exists (select from pg_roles where rolname = 'guest') then create role guest login; end if; end $$",
    );
    await client.end();
    const [refused] = await diagnose(url.replace('postgres@', 'guest:s3cret-word@'));
    assert.partialDeepStrictEqual(refused, { status: 'problem' });
    assert.match(refused?.remedy ?? '', /allow this user to create a schema/);
    assert.doesNotMatch(JSON.stringify(refused), /s3cret-word/);
    const [down] = await diagnose('postgresql://manager:s3cret-word@127.0.0.1:1/images');
    assert.match(down?.message ?? '', /ECONNREFUSED/);
    assert.doesNotMatch(JSON.stringify(down), /s3cret-word/);
  });
});
