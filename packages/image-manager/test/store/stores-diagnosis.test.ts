// Not a unit test: it starts PostgreSQL.
import assert from 'node:assert/strict';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { diagnoseStore, openStateStore } from '../../src/store/stores.ts';

async function diagnose(location: string): Promise<readonly CheckResult[]> {
  return await Array.fromAsync(diagnoseStore(location, new AbortController().signal));
}

/** Returns states and messages in sequence. */
async function messages(location: string): Promise<readonly (readonly [string, string])[]> {
  return (await diagnose(location)).map(({ status, message }) => [status, message] as const);
}

describe('diagnosis of an SQLite store', () => {
  test('the diagnosis of an SQLite store reports whether a manager leads, and changes nothing', async (t) => {
    const directory = temporaryDirectory(t);
    const path = join(directory, 'manager.sqlite');
    const place = `"${path}" can be used`;
    assert.deepEqual(await messages(path), [['ok', `${place}; no manager has used it`]]);
    assert.deepEqual(await readdir(directory), []);

    const store = await openStateStore(path);
    const usable = ['ok', `${place}; its version is 1`] as const;
    const unled = ['warning', 'no manager runs with this store'] as const;
    assert.deepEqual(await messages(path), [usable, unled]);
    const leadership = await store.lead();
    assert.deepEqual(await messages(path), [usable, ['ok', 'a manager of this host leads']]);
    await leadership.release();
    assert.deepEqual(await messages(path), [usable, unled]);
    await store.close();

    const before = [await readdir(directory), (await stat(directory)).mtimeMs];
    assert.deepEqual(await messages(path), [usable, unled]);
    assert.deepEqual([await readdir(directory), (await stat(directory)).mtimeMs], before);
  });

  test('the diagnosis of an SQLite store names files that are not a store, or a later release’s', async (t) => {
    const directory = temporaryDirectory(t);
    const path = join(directory, 'manager.sqlite');
    await writeFile(path, 'not a database at all, but long enough to be read as one');
    const [text] = await diagnose(path);
    assert.match(text?.remedy ?? '', /it is not a SQLite database; name another file|name another file/);
    const other = join(directory, 'other.sqlite');
    new DatabaseSync(other).exec('create table things (a)');
    assert.equal((await diagnose(other))[0]?.status, 'problem');
    const later = join(directory, 'later.sqlite');
    await (await openStateStore(later)).close();
    const database = new DatabaseSync(later);
    database.exec('update settings set schema_version = 99');
    database.close();
    assert.partialDeepStrictEqual((await diagnose(later))[0], {
      status: 'problem',
      remedy: 'install the later release',
    });
    const missing = await diagnose(join(directory, 'a/b/c.sqlite'));
    assert.equal(missing[0]?.status, 'problem');
  });
});
