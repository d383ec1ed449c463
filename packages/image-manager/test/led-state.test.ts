import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LedState } from '../src/led-state.ts';
import type { Upload } from '../src/records.ts';
import type { Leadership, StateChange } from '../src/store/state-store.ts';

const UPLOAD: Upload = {
  id: '0000000001-aaaaaaaa',
  imageId: 'debian-0000000000-aaaaaaaa',
  diskimage: 'debian',
  provider: 'cloud',
  imageName: 'debian',
  state: 'ready',
  reason: 'it is not there',
  requestedAt: 0,
  leftovers: false,
  seen: false,
};

/** A store that holds each write until it is let go. */
class HeldWrites {
  readonly written: StateChange[] = [];
  readonly #held: { readonly change: StateChange; readonly settle: PromiseWithResolvers<void> }[] = [];

  readonly leadership: Leadership = {
    lost: new AbortController().signal,
    takeNumbers: () => Promise.resolve(1),
    write: (change) => {
      const settle = Promise.withResolvers<void>();
      this.#held.push({ change, settle });
      return settle.promise;
    },
    restore: () => Promise.resolve(),
    release: () => Promise.resolve(),
  };

  get waiting(): number {
    return this.#held.length;
  }

  release(error?: Error): void {
    const { change, settle } = this.#held.shift() ?? assert.fail('nothing is being written');
    if (error !== undefined) settle.reject(error);
    else {
      this.written.push(change);
      settle.resolve();
    }
  }
}

function ledState(writes: HeldWrites): LedState {
  return new LedState({ builds: new Map(), uploads: new Map([[UPLOAD.id, UPLOAD]]) }, writes.leadership);
}

async function turn(): Promise<void> {
  await new Promise(setImmediate);
}

describe('LedState', () => {
  it('counts a change only when it is written', async () => {
    const writes = new HeldWrites();
    const state = ledState(writes);
    const changed = state.updateUpload(UPLOAD.id, { state: 'deleting' });
    await turn();
    assert.equal(state.uploads.get(UPLOAD.id)?.state, 'ready');
    writes.release();
    await changed;
    assert.equal(state.uploads.get(UPLOAD.id)?.state, 'deleting');
  });

  it('writes together what comes while the store is at work', async () => {
    const writes = new HeldWrites();
    const state = ledState(writes);
    const first = state.updateUpload(UPLOAD.id, { state: 'deleting' });
    await turn();
    const others = [
      state.updateUpload(UPLOAD.id, { seen: true }),
      state.change({ handledRequests: [7] }),
      state.change({ handledRequests: [8] }),
    ];
    await turn();
    assert.equal(writes.waiting, 1);
    writes.release();
    await first;
    await turn();
    writes.release();
    await Promise.all(others);
    assert.equal(writes.written.length, 2);
    assert.deepEqual(writes.written[1]?.handledRequests, [7, 8]);
  });

  it('loses neither of two changes of one record', async () => {
    const writes = new HeldWrites();
    const state = ledState(writes);
    const changes = [
      state.updateUpload(UPLOAD.id, { state: 'deleting' }),
      state.updateUpload(UPLOAD.id, { seen: true }),
    ];
    await turn();
    writes.release();
    await Promise.all(changes);
    assert.deepEqual(state.uploads.get(UPLOAD.id), { ...UPLOAD, state: 'deleting', seen: true });
  });

  it('stays as it was when the store refuses, and writes what comes later', async () => {
    const writes = new HeldWrites();
    const state = ledState(writes);
    const refused = state.updateUpload(UPLOAD.id, { state: 'deleting' });
    await turn();
    writes.release(new Error('the disk is full'));
    await assert.rejects(refused, /the disk is full/);
    assert.deepEqual(state.uploads.get(UPLOAD.id), UPLOAD);
    const later = state.updateUpload(UPLOAD.id, { seen: true });
    await turn();
    writes.release();
    await later;
    assert.equal(state.uploads.get(UPLOAD.id)?.seen, true);
  });

  it('leaves a record away that was pruned meanwhile', async () => {
    const writes = new HeldWrites();
    const state = ledState(writes);
    const pruned = state.change({ prunedUploads: [UPLOAD.id] });
    await turn();
    const updated = state.updateUpload(UPLOAD.id, { seen: true });
    writes.release();
    await pruned;
    await turn();
    writes.release();
    await updated;
    assert.equal(state.uploads.size, 0);
  });
});
