import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { ImageDocument } from '../../src/documents.ts';
import { StoreError } from '../../src/errors.ts';
import { OWNER } from '../../src/ownership.ts';
import type { Request } from '../../src/records.ts';
import type { StateStore } from '../../src/store/state-store.ts';
import { openStateStore } from '../../src/store/stores.ts';
import { LeaderProcess } from './leader.ts';
import { attestation, BUILD_BUNDLE, build, upload } from './records.ts';

/** Timeout in milliseconds; far above the five seconds of a takeover, for hosts where a process starts slowly. */
const TAKE_OVER_LIMIT = 120_000;

/**
 * Declares the tests that every kind of store passes.
 *
 * @param newLocation returns the location of a new store
 * @param execute runs SQL in the database of a store
 */
export function stateStoreContract(
  name: string,
  newLocation: () => Promise<string>,
  execute: (location: string, sql: string) => Promise<void>,
): void {
  const openNew = async (t: TestContext): Promise<StateStore> => await openUntilEnd(t, await newLocation());

  describe(`${name}: records`, () => {
    it('the store keeps every field of a record and adds none', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const text = `"quotes" and 'quotes', a\nnewline, a \\backslash, {braces}, null, ünï©ode 🎉`;
      const bare = build(store.owner, 1);
      const full = build(store.owner, 2, {
        state: 'failed',
        configuration: text,
        reason: text,
        endedAt: 1_767_225_600_123,
        withdrawn: true,
        error: text,
      });
      const bareUpload = upload(store.owner, 3, bare);
      const fullUpload = upload(store.owner, 4, full, {
        provider: text,
        imageName: text,
        state: 'deleting',
        externalId: text,
        reason: text,
        endedAt: 1_767_225_600_456,
        leftovers: true,
        seen: true,
        error: '',
      });
      await leadership.write({ builds: [bare, full], uploads: [bareUpload, fullUpload] });
      const state = await store.read();
      assert.deepEqual(
        [...state.builds],
        [bare, full].map((one) => [one.id, one]),
      );
      assert.deepEqual(
        [...state.uploads],
        [bareUpload, fullUpload].map((one) => [one.id, one]),
      );
    });

    it('the store records who paused a disk image, until the pause ends', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const paused = { id: 'debian', isPaused: true, by: 'root@host', since: 1_767_225_600_123 };
      const unpaused = { id: 'ubuntu', isPaused: false, by: 'alice', since: 1_767_225_600_456 };
      await leadership.write({ pauses: [{ ...paused, by: 'somebody else' }, unpaused] });
      await leadership.write({ pauses: [paused] });
      assert.deepEqual([...(await store.read()).pauses.values()], [paused, unpaused]);
      await leadership.write({ endedPauses: ['debian'] });
      assert.deepEqual([...(await store.read()).pauses.values()], [unpaused]);
    });

    it('the store keeps characters that a database cannot store', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const one = build(store.owner, 1, { error: 'a NUL: \0, half a character: \ud83c' });
      await leadership.write({ builds: [one] });
      const kept = (await store.read()).builds.get(one.id);
      assert.equal(kept?.error, one.error);
    });

    it('the store replaces a record completely', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const before = build(store.owner, 1, { state: 'failed', endedAt: 5, error: 'no space' });
      const after = build(store.owner, 1, { state: 'ready' });
      await leadership.write({ builds: [before] });
      await leadership.write({ builds: [before, after] });
      assert.deepEqual([...(await store.read()).builds.values()], [after]);
    });

    it('the store deletes pruned records, a build together with its uploads', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const [old, current] = [build(store.owner, 1), build(store.owner, 2)];
      const [oldUpload, currentUpload] = [upload(store.owner, 3, old), upload(store.owner, 4, current)];
      await leadership.write({ builds: [old, current], uploads: [oldUpload, currentUpload] });
      await leadership.write({ prunedBuilds: [old.id], prunedUploads: [oldUpload.id] });
      const state = await store.read();
      assert.deepEqual([...state.builds.keys()], [current.id]);
      assert.deepEqual([...state.uploads.keys()], [currentUpload.id]);
    });

    it('the store writes nothing of a change that fails in part', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const [present, absent] = [build(store.owner, 1), build(store.owner, 2)];
      const number = await store.ask({ kind: 'build', diskimage: 'debian' });
      await leadership.write({ builds: [present] });
      const dangling = upload(store.owner, 3, absent);
      const change = {
        builds: [{ ...present, withdrawn: true }],
        uploads: [dangling],
        handledRequests: [number],
      };
      await assert.rejects(leadership.write(change), withCode('store-not-usable'));
      assert.equal(leadership.lost.aborted, false);
      const state = await store.read();
      assert.deepEqual([...state.builds.values()], [present]);
      assert.equal(state.uploads.size, 0);
      assert.equal((await store.requests()).length, 1);
      await leadership.write({ builds: [absent], uploads: [dangling] });
      assert.equal((await store.read()).uploads.size, 1);
    });

    it('the store gives readers a consistent snapshot during writes', async (t) => {
      const location = await newLocation();
      const [store, other] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      const leadership = await store.lead();
      const builds = Array.from({ length: 50 }, (_, number) => build(store.owner, number));
      const write = async (round: number): Promise<void> => {
        await leadership.write({ builds: builds.map((one) => ({ ...one, reason: `round ${round}` })) });
      };
      for (let round = 0; round < 30; round += 1) {
        const [state] = await Promise.all([other.read(), write(round)]);
        const reasons = new Set([...state.builds.values()].map(({ reason }) => reason));
        assert.ok(reasons.size <= 1, [...reasons].join(' and '));
      }
      assert.equal((await other.read()).builds.get(builds[0]?.id ?? '')?.reason, 'round 29');
    });
  });

  describe(`${name}: documents`, () => {
    it('documents are stored next to the records, each once', async (t) => {
      const store = await openNew(t);
      const { leadership, one, east, west, ofBuild, documents } = await writeDocuments(store);
      assert.deepEqual(byText(await store.documents(one.id)), byText(documents));
      const [bundle, packages] = ofBuild as [ImageDocument, ImageDocument];
      assert.deepEqual(await store.attestations(one.id), [bundle, attestation(east), attestation(west)]);
      assert.deepEqual(await store.attestations(one.id, west.id), [bundle, attestation(west)]);
      assert.equal(await store.packages(one.id), packages.text);
      await leadership.write({ builds: [{ ...one, withdrawn: true }], uploads: [east], documents });
      assert.deepEqual(byText(await store.documents(one.id)), byText(documents));
      assert.deepEqual(await store.documents('another'), []);
      assert.equal(await store.packages('another'), undefined);
    });

    it('documents are pruned with the record that they belong to', async (t) => {
      const store = await openNew(t);
      const { leadership, one, east, west, ofBuild } = await writeDocuments(store);
      await leadership.write({ prunedUploads: [east.id] });
      assert.deepEqual(byText(await store.documents(one.id)), byText([...ofBuild, attestation(west)]));
      await leadership.write({ prunedUploads: [west.id] });
      assert.deepEqual(byText(await store.documents(one.id)), byText(ofBuild));
      await leadership.write({ prunedBuilds: [one.id] });
      assert.deepEqual(await store.documents(one.id), []);
    });

    it('documents are not written if their record is not', async (t) => {
      const store = await openNew(t);
      const { leadership, one, west } = await writeDocuments(store);
      const absent = upload(store.owner, 9, one);
      const before = await store.documents(one.id);
      const change = { uploads: [{ ...west, seen: true }], documents: [attestation(absent)] };
      await assert.rejects(leadership.write(change), withCode('store-not-usable'));
      assert.equal((await store.read()).uploads.get(west.id)?.seen, false);
      assert.deepEqual(await store.documents(one.id), before);
    });

    it('documents may have a mebibyte each', async (t) => {
      const store = await openNew(t);
      const { leadership, one } = await writeDocuments(store);
      const text = 'x'.repeat(2 ** 20);
      await leadership.write({ documents: [{ kind: 'attestation', imageId: one.id, text }] });
      assert.ok((await store.attestations(one.id)).some((each) => each.text === text));
    });
  });

  describe(`${name}: a damaged store`, () => {
    for (const [what, sql, message] of [
      [
        'record',
        `update builds set record = replace(record, '"building"', '"lost"')`,
        /damaged: record "debian-0000000001-\w+" in table builds: state is not one of building, ready.*; correct it in the/,
      ],
      [
        'owner',
        `update settings set owner = '../../'`,
        /damaged: table settings: owner must match pattern .*; correct it in the database, or import an export/,
      ],
    ] as const) {
      it(`the store reports a damaged ${what}, and works once that is corrected`, async (t) => {
        const location = await newLocation();
        const store = await openUntilEnd(t, location);
        const leadership = await store.lead();
        const one = build(store.owner, 1);
        await leadership.write({ builds: [one] });
        await execute(location, sql);
        await assert.rejects(store.read(), (error: Error) => {
          assert.match(error.message, message);
          return withCode('store-not-usable')(error);
        });
        await execute(location, `update builds set record = replace(record, '"lost"', '"building"')`);
        await execute(location, `update settings set owner = '${store.owner}'`);
        assert.deepEqual([...(await store.read()).builds.values()], [one]);
      });
    }

    it('the store reports a record with the id of another record, which it would replace', async (t) => {
      const location = await newLocation();
      const store = await openUntilEnd(t, location);
      const leadership = await store.lead();
      const [one, two] = [build(store.owner, 1), build(store.owner, 2)];
      await leadership.write({ builds: [one, two] });
      await execute(location, `update builds set record = '${JSON.stringify(one)}'`);
      await assert.rejects(store.read(), (error: Error) => {
        assert.match(
          error.message,
          new RegExp(`damaged: record "${two.id}" in table builds: its id is "${one.id}"; correct`),
        );
        return withCode('store-not-usable')(error);
      });
    });

    it('the store returns a damaged request with the reason, alongside the others', async (t) => {
      const location = await newLocation();
      const store = await openUntilEnd(t, location);
      await store.ask({ kind: 'build', diskimage: 'debian' });
      await execute(location, `update requests set request = '{"kind":'`);
      await store.ask({ kind: 'rollback', diskimage: 'debian' });
      const [damaged, intact] = (await store.requests()).map(({ request }) => request);
      assert.equal(damaged?.kind, 'invalid');
      assert.match(damaged.reason, /^it is not JSON; make the request again$/);
      assert.deepEqual(intact, { kind: 'rollback', diskimage: 'debian' });
    });
  });

  describe(`${name}: owner and numbers`, () => {
    it('the store generates one owner, even if several processes create it at once', async (t) => {
      const location = await newLocation();
      const stores = await Promise.all(Array.from({ length: 5 }, () => openUntilEnd(t, location)));
      const owners = new Set(stores.map(({ owner }) => owner));
      assert.equal(owners.size, 1);
      assert.match([...owners].join(), OWNER);
      const another = await openNew(t);
      assert.ok(!owners.has(another.owner));
    });

    it('the store gives no number twice, not even to different leaders', async (t) => {
      const location = await newLocation();
      const first = await openUntilEnd(t, location);
      const leadership = await first.lead();
      const numbers = await Promise.all([leadership.takeNumbers(1), leadership.takeNumbers(3)]);
      assert.deepEqual(numbers, [1, 2]);
      assert.equal((await first.read()).nextNumber, 5);
      await first.close();
      const second = await openUntilEnd(t, location);
      assert.equal(await (await second.lead()).takeNumbers(1), 5);
    });
  });

  describe(`${name}: requests`, () => {
    it('the store keeps any process’s requests in order until they are handled', async (t) => {
      const location = await newLocation();
      const [asking, leader] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      const leadership = await leader.lead();
      const asked: readonly Request[] = [
        { kind: 'build', diskimage: 'it\'s "debian"' },
        { kind: 'delete-build', imageId: 'debian-0000000001-k7f3q2xa' },
        { kind: 'delete-upload', uploadId: '0000000002-k7f3q2xa' },
        { kind: 'rollback', diskimage: 'ünïcode' },
      ];
      const numbers: number[] = [];
      for (const request of asked) numbers.push(await asking.ask(request));
      const pending = await leader.requests();
      assert.deepEqual(
        pending,
        asked.map((request, index) => ({ number: numbers[index], request })),
      );
      assert.deepEqual(
        numbers.toSorted((a, b) => a - b),
        numbers,
      );
      await leadership.write({ handledRequests: numbers.slice(0, 3) });
      assert.deepEqual(await leader.requests(), pending.slice(3));
      await leadership.write({ handledRequests: numbers });
      assert.deepEqual(await leader.requests(), []);
      const later = await asking.ask({ kind: 'build', diskimage: 'debian' });
      assert.ok(!numbers.includes(later), 'the number of a handled request is used again');
    });
  });

  describe(`${name}: leadership`, () => {
    it('the store has one leader, which cannot write after its release', async (t) => {
      const location = await newLocation();
      const [first, second] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      const before = await first.lead();
      const waiting = second.lead();
      const events: string[] = [];
      void waiting.then(() => events.push('elected'));
      // Long enough for several attempts of the second; the first could not continue if one succeeded.
      for (const end = performance.now() + 600; performance.now() < end; await new Promise(setImmediate)) {
        await before.takeNumbers(1);
      }
      assert.deepEqual(events, []);
      await before.release();
      const after = await waiting;
      await assert.rejects(before.write({ builds: [build(first.owner, 1)] }), withCode('not-leader'));
      await assert.rejects(before.takeNumbers(1), withCode('not-leader'));
      assert.equal((await first.read()).builds.size, 0);
      await before.release();
      await after.write({ builds: [build(second.owner, 1)] });
      assert.equal((await first.read()).builds.size, 1);
    });

    it('a leader finishes pending writes before it releases the store', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const written = leadership.write({ builds: [build(store.owner, 1)] });
      await leadership.release();
      await written;
      assert.equal((await store.read()).builds.size, 1);
      assert.equal(leadership.lost.aborted, false);
    });

    it('a leader that closes the store hands over to the waiting process', async (t) => {
      const location = await newLocation();
      const [first, second] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      await first.lead();
      const waiting = second.lead();
      await first.close();
      await waiting;
      await assert.rejects(first.read(), withCode('store-not-usable'));
      await assert.rejects(first.lead(), withCode('store-not-usable'));
    });

    it('the wait for leadership ends with the abort’s reason', async (t) => {
      const location = await newLocation();
      const [first, second] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      const leadership = await first.lead();
      const controller = new AbortController();
      const waiting = second.lead({ signal: controller.signal });
      const reason = new Error('stopped');
      controller.abort(reason);
      await assert.rejects(waiting, (error) => error === reason);
      await assert.rejects(second.lead({ signal: controller.signal }), (error) => error === reason);
      await leadership.release();
      await second.lead();
    });

    it('the store elects another leader when one is killed during a write', {
      timeout: TAKE_OVER_LIMIT,
    }, async (t) => {
      const location = await newLocation();
      const store = await openUntilEnd(t, location);
      const leader = LeaderProcess.start(t, location);
      assert.equal(await leader.says('leads'), store.owner);
      for (let batch = 1; batch <= 20; batch += 1) assert.equal(await leader.says('wrote'), String(batch));
      const waiting = store.lead();
      leader.child.kill('SIGKILL');
      const killed = performance.now();
      const leadership = await waiting;
      t.diagnostic(`took over after ${Math.round(performance.now() - killed)} ms`);
      let acknowledged = 20;
      for (let more = await leader.says('wrote'); more !== undefined; more = await leader.says('wrote')) {
        acknowledged = Number(more);
      }
      const { builds, nextNumber } = await store.read();
      const reasons = Map.groupBy(builds.values(), ({ reason }) => reason);
      for (const [reason, batch] of reasons)
        assert.equal(reason, `${reason.split(' ')[0]} of ${batch.length}`);
      // The last batch may have been written without its acknowledgement.
      assert.ok(
        reasons.size === acknowledged || reasons.size === acknowledged + 1,
        `${reasons.size} batches`,
      );
      assert.ok(nextNumber > reasons.size);
      assert.equal(await leadership.takeNumbers(1), nextNumber);
    });
  });
}

/** Writes a build with two uploads and all their documents. */
async function writeDocuments(store: StateStore) {
  const leadership = await store.lead();
  const one = build(store.owner, 1);
  const [east, west] = [upload(store.owner, 2, one), upload(store.owner, 3, one)];
  const ofBuild: readonly ImageDocument[] = [
    { kind: 'attestation', imageId: one.id, text: BUILD_BUNDLE },
    { kind: 'packages', imageId: one.id, text: 'H4sI' },
  ];
  const documents = [...ofBuild, attestation(east), attestation(west)];
  await leadership.write({ builds: [one], uploads: [east, west], documents });
  return { leadership, one, east, west, ofBuild, documents };
}

function byText(documents: readonly ImageDocument[]): readonly ImageDocument[] {
  return documents.toSorted((a, b) => (a.text < b.text ? -1 : 1));
}

/** Opens a store for the duration of the test. */
export async function openUntilEnd(t: TestContext, location: string): Promise<StateStore> {
  const store = await openStateStore(location);
  t.after(() => store.close());
  return store;
}

/** Makes a check of the error code for `assert.rejects`. */
export function withCode(code: StoreError['code']): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof StoreError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  };
}
