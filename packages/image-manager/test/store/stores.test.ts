import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { openStateStore } from '../../src/store/stores.ts';
import { withCode } from './state-store-contract.ts';

test('a store URL for another database is rejected without showing the password or creating a file', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'open-state-store-'));
  const before = process.cwd();
  process.chdir(directory);
  t.after(async () => {
    process.chdir(before);
    await rm(directory, { recursive: true });
  });
  for (const scheme of ['mysql', 'mysql+pymysql', 'POSTGRESQL', 'sqlite', 'file']) {
    await assert.rejects(openStateStore(`${scheme}://manager:s3cret@db/images`), (error: Error) => {
      assert.match(
        error.message,
        /does not name a PostgreSQL database; write postgresql:\/\/USER@HOST\/DATABASE/,
      );
      assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }), /s3cret/);
      return withCode('store-not-usable')(error);
    });
  }
  assert.deepEqual(await readdir(directory), []);
});
