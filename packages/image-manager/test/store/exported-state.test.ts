// Only in test:all: it needs PostgreSQL.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import { type Postgresql, startPostgresql } from '../../../../test/fixtures/postgresql.ts';
import {
  type ExportedState,
  exportDocuments,
  exportState,
  importState,
} from '../../src/store/exported-state.ts';
import type { StateStore } from '../../src/store/state-store.ts';
import { attestation, BUILD_BUNDLE, build, upload } from './records.ts';
import { openUntilEnd, withCode } from './state-store-contract.ts';

let server: Postgresql;
let directory: string;
let files = 0;
before(async () => {
  server = await startPostgresql();
  directory = await mkdtemp(join(tmpdir(), 'exported-state-'));
});
after(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

async function openNew(t: TestContext, location?: string): Promise<StateStore> {
  files += 1;
  return await openUntilEnd(t, location ?? join(directory, `${files}.sqlite`));
}

/** Writes records of every kind. */
async function fill(store: StateStore): Promise<void> {
  const leadership = await store.lead();
  const numbers: number[] = [];
  for (let count = 0; count < 4; count += 1) numbers.push(await leadership.takeNumbers(1));
  const [first, second, third, fourth] = numbers as [number, number, number, number];
  const plain = build(store.owner, first);
  const failed = build(store.owner, second, {
    state: 'failed',
    endedAt: 1_767_225_600_123,
    error: 'no "space"\n🎉',
  });
  await leadership.write({
    builds: [plain, failed],
    uploads: [
      upload(store.owner, third, plain),
      upload(store.owner, fourth, plain, { state: 'ready', externalId: 'e-1', endedAt: 0, seen: true }),
    ],
    pauses: [{ id: 'debian', isPaused: true, by: 'root@host', since: 1_767_225_600_123 }],
  });
  await leadership.release();
}

/** Exports a filled store and changes the export. */
async function changedExport(t: TestContext, change: (json: MutableExport) => void): Promise<unknown> {
  const store = await openNew(t);
  await fill(store);
  const json = JSON.parse(JSON.stringify(await exportState(store))) as MutableExport;
  change(json);
  return json;
}

type MutableExport = {
  -readonly [Key in keyof ExportedState]: ExportedState[Key] extends readonly unknown[]
    ? [Record<string, unknown>, Record<string, unknown>]
    : unknown;
} & Record<string, unknown>;

describe('state exports', () => {
  it('an exported state has ISO 8601 times and no empty fields', async (t) => {
    const store = await openNew(t);
    await fill(store);
    const { owner } = store;
    const json = await exportState(store);
    assert.deepEqual([json.version, json.owner, json['next-number']], [1, owner, 5]);
    assert.deepEqual(json.builds, [
      {
        id: `debian-0000000001-${owner}`,
        diskimage: 'debian',
        state: 'building',
        configuration: 'c0ffee',
        reason: 'its first ready build',
        'requested-at': '2026-01-01T00:00:00.001Z',
        withdrawn: false,
      },
      {
        id: `debian-0000000002-${owner}`,
        diskimage: 'debian',
        state: 'failed',
        configuration: 'c0ffee',
        reason: 'its first ready build',
        'requested-at': '2026-01-01T00:00:00.002Z',
        'ended-at': '2026-01-01T00:00:00.123Z',
        withdrawn: false,
        error: 'no "space"\n🎉',
      },
    ]);
    assert.equal(json.uploads[1]?.['image-id'], `debian-0000000001-${owner}`);
    assert.equal(json.uploads[1]?.['ended-at'], '1970-01-01T00:00:00.000Z');
    assert.deepEqual(json.pauses, [
      { id: 'debian', 'is-paused': true, by: 'root@host', since: '2026-01-01T00:00:00.123Z' },
    ]);
  });

  it('an exported state moves from SQLite to PostgreSQL and back, with owner and next number', async (t) => {
    const first = await openNew(t);
    await fill(first);
    const json = await exportState(first);
    const second = await openNew(t, await server.createDatabase());
    await importState(second, JSON.parse(JSON.stringify(json)));
    assert.deepEqual(await exportState(second), json);
    assert.deepEqual(await second.read(), await first.read());
    const third = await openNew(t);
    const generated = third.owner;
    await importState(third, await exportState(second));
    assert.deepEqual(await exportState(third), json);
    assert.notEqual(third.owner, generated);
    assert.equal(third.owner, first.owner);
    assert.equal(await (await third.lead()).takeNumbers(1), 5);
  });

  it('an exported state includes the documents, one by one or as a part of the JSON', async (t) => {
    const first = await openNew(t);
    await fill(first);
    const { builds, uploads } = await first.read();
    const documents = [
      ...Array.from(builds.keys(), (imageId) => {
        return { kind: 'attestation', imageId, text: BUILD_BUNDLE } as const;
      }),
      ...Array.from(uploads.values(), attestation),
    ];
    await (await first.lead()).write({ documents });
    const json = await exportState(first);
    const exported = await Array.fromAsync(exportDocuments(first, json));
    assert.equal(exported.length, documents.length);
    const second = await openNew(t, await server.createDatabase());
    await importState(second, json, { documents: exportDocuments(first, json) });
    const third = await openNew(t);
    await importState(third, JSON.parse(JSON.stringify({ ...json, documents: exported })));
    for (const store of [second, third]) {
      for (const id of builds.keys()) assert.deepEqual(await store.documents(id), await first.documents(id));
    }
  });

  it('an exported state omits documents of newer uploads', async (t) => {
    const store = await openNew(t);
    await fill(store);
    const json = await exportState(store);
    const [one] = (await store.read()).builds.values();
    const later = upload(store.owner, 9, one ?? assert.fail('no build'));
    await (await store.lead()).write({ uploads: [later], documents: [attestation(later)] });
    assert.deepEqual(await Array.fromAsync(exportDocuments(store, json)), []);
  });

  it('an imported state gives its owner to a standby process once that is elected', async (t) => {
    const path = join(directory, 'shared.sqlite');
    const [importing, waiting] = [await openNew(t, path), await openNew(t, path)];
    const json = await changedExport(t, () => {});
    await importState(importing, json);
    const leadership = await waiting.lead();
    assert.equal(waiting.owner, (json as ExportedState).owner);
    await leadership.release();
  });

  it('a state can be imported only into a store without records and without a taken number', async (t) => {
    const json = await changedExport(t, () => {});
    for (const location of [undefined, await server.createDatabase()]) {
      const store = await openNew(t, location);
      const leadership = await store.lead();
      await leadership.takeNumbers(1);
      await leadership.release();
      const state = await store.read();
      await assert.rejects(importState(store, json), withCode('store-not-empty'));
      assert.deepEqual(await store.read(), state);
      // The import has given up leadership.
      await (await store.lead()).release();
    }
  });

  it('an import of a state stops waiting for leadership at the given time', async (t) => {
    const path = join(directory, 'led.sqlite');
    const [leader, importing] = [await openNew(t, path), await openNew(t, path)];
    await leader.lead();
    const json = await changedExport(t, () => {});
    const signal = AbortSignal.timeout(1);
    await assert.rejects(importState(importing, json, { signal }), { name: 'TimeoutError' });
  });

  for (const [what, change, message] of [
    ['has another version', (json) => (json.version = 2), /: version is not 1;/],
    ['has an unknown key', (json) => (json.extra = 1), /: it has the unknown key "extra";/],
    ['lacks a key', (json) => delete json.uploads[0].seen, /: uploads\[0\]\.seen is missing;/],
    [
      'has an unknown state',
      (json) => (json.builds[1].state = 'gone'),
      /: builds\[1\]\.state is not one of building, ready, failed/,
    ],
    [
      'has a number as a time',
      (json) => (json.builds[0]['requested-at'] = 5),
      /: builds\[0\]\.requested-at is not a string;/,
    ],
    [
      'has an impossible time',
      (json) => (json.builds[0]['requested-at'] = '2026-02-30T00:00:00.000Z'),
      /: builds\[0\]\.requested-at is not a time such as 2026-/,
    ],
    ['has null as a field', (json) => (json.builds[0].error = null), /: builds\[0\]\.error is not a string;/],
    ['has an invalid owner', (json) => (json.owner = 'Nobody'), /: owner must match pattern/],
    [
      'has ids of another owner',
      (json) => (json.owner = 'aaaaaaaa'),
      /builds\[0\]\.id: ".*" does not belong to owner "aaaaaaaa"/,
    ],
    [
      'has a next number that is taken',
      (json) => (json['next-number'] = 4),
      /uploads\[1\]\.id: .* not below next-number, 4/,
    ],
    ['has a build twice', (json) => (json.builds[1] = json.builds[0]), /builds\[1\]\.id: ".*" occurs twice/],
    ['lacks the build of an upload', (json) => json.builds.shift(), /uploads\[0\]\.image-id: no build/],
    [
      'has a document of no build',
      (json) => (json.documents = [{ kind: 'attestation', 'image-id': 'none', text: BUILD_BUNDLE }]),
      /: documents\[0\]: no build "none";/,
    ],
    [
      'has a document of no upload',
      (json) => {
        const document = { kind: 'attestation', 'image-id': json.builds[0].id, text: BUILD_BUNDLE };
        json.documents = [document, { ...document, 'upload-id': 'none' }];
      },
      /: documents\[1\]: no upload "none" of that build;/,
    ],
    [
      'has a damaged document',
      (json) => (json.documents = [{ kind: 'attestation', 'image-id': json.builds[0].id, text: '{' }]),
      /: documents\[0\]: it is not JSON;/,
    ],
  ] satisfies readonly (readonly [string, (json: MutableExport) => unknown, RegExp])[]) {
    it(`a state is not imported if it ${what}, and the store stays empty`, async (t) => {
      const json = await changedExport(t, change);
      const store = await openNew(t);
      const empty = await store.read();
      await assert.rejects(importState(store, json), (error: Error) => {
        assert.match(error.message, message);
        return withCode('invalid-export')(error);
      });
      assert.deepEqual(await store.read(), empty);
    });
  }

  it('an imported state may contain Zuul builds, whose ids have no mark', async (t) => {
    const id = importedImageId({ image: 'debian', uuid: 'a'.repeat(32), endTime: 0 });
    const json = await changedExport(t, ({ builds }) => builds.push({ ...builds[0], id }));
    const store = await openNew(t);
    await importState(store, json);
    assert.equal((await store.read()).builds.get(id)?.diskimage, 'debian');
  });

  for (const json of [undefined, null, 'text', [], {}]) {
    it(`a state is not imported from ${JSON.stringify(json)}`, async (t) => {
      await assert.rejects(importState(await openNew(t), json), withCode('invalid-export'));
    });
  }
});
