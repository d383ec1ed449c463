import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { StoreError } from '../../src/errors.ts';
import { OWNER } from '../../src/ownership.ts';
import type { Request } from '../../src/records.ts';
import { openStateStore } from '../../src/store/open-state-store.ts';
import type { StateStore } from '../../src/store/state-store.ts';
import { LeaderProcess } from './leader.ts';
import { build, upload } from './records.ts';

/** Long past the five seconds in which a stand-by takes over, so that a slow machine fails no test. */
const TAKE_OVER_LIMIT = 30_000;

/** What every kind of store does; each test has an empty one of its own. */
export function stateStoreContract(name: string, newLocation: () => Promise<string>): void {
  const openNew = async (t: TestContext): Promise<StateStore> => await openUntilEnd(t, await newLocation());

  describe(`${name}: records`, () => {
    it('keeps every field of a record, and leaves out what is absent', async (t) => {
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

    it('keeps a text that no database takes, but for the part that is none', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const one = build(store.owner, 1, { error: 'a NUL: \0, half a character: \ud83c' });
      await leadership.write({ builds: [one] });
      const kept = (await store.read()).builds.get(one.id);
      assert.equal(kept?.error, 'a NUL: \ufffd, half a character: \ufffd');
    });

    it('puts a record in place of the one before, with the fields that are absent now', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const before = build(store.owner, 1, { state: 'failed', endedAt: 5, error: 'no space' });
      const after = build(store.owner, 1, { state: 'ready' });
      await leadership.write({ builds: [before] });
      await leadership.write({ builds: [before, after] });
      assert.deepEqual([...(await store.read()).builds.values()], [after]);
    });

    it('forgets what is pruned, a build together with its uploads', async (t) => {
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

    it('writes nothing of a change that cannot be written whole', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const [present, absent] = [build(store.owner, 1), build(store.owner, 2)];
      const number = await store.ask({ kind: 'build', diskimage: 'debian' });
      await leadership.write({ builds: [present] });
      const orphan = upload(store.owner, 3, absent);
      const change = {
        builds: [{ ...present, withdrawn: true }],
        uploads: [orphan],
        handledRequests: [number],
      };
      await assert.rejects(leadership.write(change), withCode('store-not-usable'));
      assert.equal(leadership.lost.aborted, false);
      const state = await store.read();
      assert.deepEqual([...state.builds.values()], [present]);
      assert.equal(state.uploads.size, 0);
      assert.equal((await store.requests()).length, 1);
      await leadership.write({ builds: [absent], uploads: [orphan] });
      assert.equal((await store.read()).uploads.size, 1);
    });

    it('is read by others as of one moment, while it is written', async (t) => {
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

  describe(`${name}: owner and numbers`, () => {
    it('draws an owner once, for all who open the store, at once, too', async (t) => {
      const location = await newLocation();
      const stores = await Promise.all(Array.from({ length: 5 }, () => openUntilEnd(t, location)));
      const owners = new Set(stores.map(({ owner }) => owner));
      assert.equal(owners.size, 1);
      assert.match([...owners].join(), OWNER);
      const another = await openNew(t);
      assert.ok(!owners.has(another.owner));
    });

    it('gives no number twice, and goes on after the leader before', async (t) => {
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
    it('hands requests of any process to the leader in their order, until they are handled', async (t) => {
      const location = await newLocation();
      const [asking, leading] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      const leadership = await leading.lead();
      const asked: readonly Request[] = [
        { kind: 'build', diskimage: 'it\'s "debian"' },
        { kind: 'delete-build', imageId: 'debian-0000000001-k7f3q2xa' },
        { kind: 'delete-upload', uploadId: '0000000002-k7f3q2xa' },
        { kind: 'rollback', diskimage: 'ünïcode' },
      ];
      const numbers: number[] = [];
      for (const request of asked) numbers.push(await asking.ask(request));
      const pending = await leading.requests();
      assert.deepEqual(
        pending,
        asked.map((request, index) => ({ number: numbers[index], request })),
      );
      assert.deepEqual(
        numbers.toSorted((a, b) => a - b),
        numbers,
      );
      await leadership.write({ handledRequests: numbers.slice(0, 3) });
      assert.deepEqual(await leading.requests(), pending.slice(3));
      await leadership.write({ handledRequests: numbers });
      assert.deepEqual(await leading.requests(), []);
      const later = await asking.ask({ kind: 'build', diskimage: 'debian' });
      assert.ok(!numbers.includes(later), 'a number that was handled means another request now');
    });
  });

  describe(`${name}: leadership`, () => {
    it('has one leader; who releases hands over, and writes no more', async (t) => {
      const location = await newLocation();
      const [first, second] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      const before = await first.lead();
      const waiting = second.lead();
      const events: string[] = [];
      void waiting.then(() => events.push('followed'));
      // For a time in which the second tries more than once; were it let in, the first could not go on.
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

    it('writes what was asked for before a release', async (t) => {
      const store = await openNew(t);
      const leadership = await store.lead();
      const written = leadership.write({ builds: [build(store.owner, 1)] });
      await leadership.release();
      await written;
      assert.equal((await store.read()).builds.size, 1);
      assert.equal(leadership.lost.aborted, false);
    });

    it('hands over when the store is closed', async (t) => {
      const location = await newLocation();
      const [first, second] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      await first.lead();
      const waiting = second.lead();
      await first.close();
      await waiting;
      await assert.rejects(first.read(), withCode('store-not-usable'));
      await assert.rejects(first.lead(), withCode('store-not-usable'));
    });

    it('ends the wait of who is told to stop, with the reason', async (t) => {
      const location = await newLocation();
      const [first, second] = [await openUntilEnd(t, location), await openUntilEnd(t, location)];
      const leadership = await first.lead();
      const controller = new AbortController();
      const waiting = second.lead({ signal: controller.signal });
      const reason = new Error('told to stop');
      controller.abort(reason);
      await assert.rejects(waiting, (error) => error === reason);
      await assert.rejects(second.lead({ signal: controller.signal }), (error) => error === reason);
      await leadership.release();
      await second.lead();
    });

    it('follows a leader that was killed while it wrote', { timeout: TAKE_OVER_LIMIT }, async (t) => {
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
      // The last one may have been written, and its acknowledgement have come too late.
      assert.ok(
        reasons.size === acknowledged || reasons.size === acknowledged + 1,
        `${reasons.size} batches`,
      );
      assert.ok(nextNumber > reasons.size);
      assert.equal(await leadership.takeNumbers(1), nextNumber);
    });
  });
}

/** Opens a store that is closed when the test ends. */
export async function openUntilEnd(t: TestContext, location: string): Promise<StateStore> {
  const store = await openStateStore(location);
  t.after(() => store.close());
  return store;
}

/** For `assert.rejects`. */
export function withCode(code: StoreError['code']): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof StoreError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  };
}
