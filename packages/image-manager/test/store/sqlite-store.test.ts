import assert from 'node:assert/strict';
import { chmod, copyFile, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { openStateStore } from '../../src/store/stores.ts';
import { build } from './records.ts';
import { openUntilEnd, stateStoreContract, withCode } from './state-store-contract.ts';

let directory: string;
let files = 0;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sqlite-store-'));
});
after(() => rm(directory, { recursive: true, force: true }));

function newPath(): string {
  files += 1;
  return join(directory, `${files}.sqlite`);
}

stateStoreContract(
  'SQLite',
  async () => newPath(),
  async (location, sql) => {
    const database = new DatabaseSync(location);
    database.exec(sql);
    database.close();
  },
);

describe('SQLite: the file', () => {
  it('the SQLite file is created with the last directory of its path, for this user only', async (t) => {
    const path = join(directory, 'new', 'state.sqlite');
    const store = await openUntilEnd(t, path);
    await (await store.lead()).takeNumbers(1);
    for (const name of [path, `${path}-wal`, `${path}-leader`]) {
      assert.equal((await stat(name)).mode & 0o777, 0o600, name);
    }
  });

  it('the SQLite file and its directory get private permissions, whatever the umask', async (t) => {
    const umask = process.umask(0);
    t.after(() => process.umask(umask));
    const path = join(directory, 'wide', 'state.sqlite');
    await (await openStateStore(path)).close();
    assert.equal((await stat(join(directory, 'wide'))).mode & 0o777, 0o700);
    await chmod(path, 0o666);
    const store = await openUntilEnd(t, path);
    await (await store.lead()).takeNumbers(1);
    for (const name of [path, `${path}-wal`, `${path}-shm`, `${path}-leader`]) {
      assert.equal((await stat(name)).mode & 0o777, 0o600, name);
    }
  });

  it('the SQLite file is rejected at an impossible path', async () => {
    const file = newPath();
    await writeFile(file, '');
    for (const path of [
      join(directory, 'no', 'such', 'directory', 'state.sqlite'),
      join(file, 'state.sqlite'),
      directory,
      // Not even root can create a file there.
      '/sys/state.sqlite',
    ]) {
      await assert.rejects(openStateStore(path), withCode('store-not-usable'), path);
    }
  });

  it('the SQLite file is rejected and left unchanged if it is not a store', async () => {
    const text = newPath();
    await writeFile(text, 'diskimages:\n'.repeat(100));
    const foreign = newPath();
    const database = new DatabaseSync(foreign);
    database.exec('create table builds (id text)');
    database.close();
    const empty = newPath();
    await writeFile(empty, '');
    for (const path of [text, foreign, empty]) {
      const { size, mtimeMs } = await stat(path);
      await assert.rejects(openStateStore(path), (error: Error) => {
        assert.match(error.message, /name another file/);
        return withCode('store-not-usable')(error);
      });
      const now = await stat(path);
      assert.deepEqual([now.size, now.mtimeMs], [size, mtimeMs]);
    }
  });

  it('the SQLite file is rejected if a later release wrote it', async () => {
    const path = newPath();
    await (await openStateStore(path)).close();
    const database = new DatabaseSync(path);
    database.exec('update settings set schema_version = schema_version + 1');
    database.close();
    await assert.rejects(openStateStore(path), withCode('store-too-new'));
  });

  it('the SQLite file has one leader under all its names', async (t) => {
    const path = newPath();
    const store = await openUntilEnd(t, path);
    await symlink(path, `${path}.link`);
    const other = await openUntilEnd(t, `${path}.link`);
    await store.lead();
    const controller = new AbortController();
    const waiting = other.lead({ signal: controller.signal });
    // A started attempt is finished despite the abort.
    controller.abort(new Error('still waiting'));
    await assert.rejects(waiting, /still waiting/);
  });

  it('the SQLite file cannot be written by a leader whose lock file was deleted', async (t) => {
    const path = newPath();
    const store = await openUntilEnd(t, path);
    const other = await openUntilEnd(t, path);
    const leadership = await store.lead();
    await rm(`${path}-leader`);
    await other.lead();
    await assert.rejects(leadership.write({ builds: [build(store.owner, 1)] }), withCode('not-leader'));
    assert.equal(leadership.lost.aborted, true);
    assert.equal((await store.read()).builds.size, 0);
  });

  it('the SQLite file is read again once the cause of a failed read is gone', async (t) => {
    const path = newPath();
    const store = await openUntilEnd(t, path);
    await store.ask({ kind: 'build', diskimage: 'debian' });
    assert.equal((await store.requests()).length, 1);
    const database = new DatabaseSync(path);
    t.after(() => database.close());
    database.exec('alter table requests rename to elsewhere');
    await assert.rejects(store.requests(), withCode('store-not-usable'));
    database.exec('alter table elsewhere rename to requests');
    assert.equal((await store.requests()).length, 1);
  });

  it('the SQLite file is complete in a copy that is made after closing the store', async (t) => {
    const path = newPath();
    const store = await openUntilEnd(t, path);
    const leadership = await store.lead();
    await leadership.write({ builds: [build(store.owner, 1)] });
    await store.close();
    await copyFile(path, `${path}.copy`);
    const copy = await openUntilEnd(t, `${path}.copy`);
    assert.equal((await copy.read()).builds.size, 1);
    assert.equal(copy.owner, store.owner);
  });
});
