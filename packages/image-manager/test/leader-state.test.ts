import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LeaderState } from '../src/leader-state.ts';
import type { Upload } from '../src/records.ts';
import type { ManagerLeadership, StateChange } from '../src/store/leadership.ts';

const UPLOAD: Upload = {
  id: '0000000001-aaaaaaaa',
  imageId: 'debian-0000000000-aaaaaaaa',
  diskimage: 'debian',
  provider: 'cloud',
  imageName: 'debian',
  state: 'ready',
  reason: 'the provider lacks it',
  requestedAt: 0,
  leftovers: false,
  seen: false,
};

/** A store that blocks each write until it is released. */
class HeldWrites {
  readonly written: StateChange[] = [];
  readonly #held: { readonly change: StateChange; readonly settle: PromiseWithResolvers<void> }[] = [];

  readonly leadership: ManagerLeadership = {
    lost: new AbortController().signal,
    takeNumbers: () => Promise.resolve(1),
    write: (change) => {
      const settle = Promise.withResolvers<void>();
      this.#held.push({ change, settle });
      return settle.promise;
    },
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

function leaderState(writes: HeldWrites): LeaderState {
  return new LeaderState(
    { builds: new Map(), uploads: new Map([[UPLOAD.id, UPLOAD]]), pauses: new Map() },
    writes.leadership,
  );
}

async function turn(): Promise<void> {
  await new Promise(setImmediate);
}

describe('LeaderState', () => {
  it('the leader’s state shows a change only after it was written', async () => {
    const writes = new HeldWrites();
    const state = leaderState(writes);
    const changed = state.updateUpload(UPLOAD.id, { state: 'deleting' });
    await turn();
    assert.equal(state.uploads.get(UPLOAD.id)?.state, 'ready');
    writes.release();
    await changed;
    assert.equal(state.uploads.get(UPLOAD.id)?.state, 'deleting');
  });

  it('the leader’s state combines the changes that arrive during a write into one write', async () => {
    const writes = new HeldWrites();
    const state = leaderState(writes);
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

  it('the leader’s state keeps both of two concurrent changes to one record', async () => {
    const writes = new HeldWrites();
    const state = leaderState(writes);
    const changes = [
      state.updateUpload(UPLOAD.id, { state: 'deleting' }),
      state.updateUpload(UPLOAD.id, { seen: true }),
    ];
    await turn();
    writes.release();
    await Promise.all(changes);
    assert.deepEqual(state.uploads.get(UPLOAD.id), { ...UPLOAD, state: 'deleting', seen: true });
  });

  it('the leader’s state does not change after a failed write, and accepts later changes', async () => {
    const writes = new HeldWrites();
    const state = leaderState(writes);
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

  it('the leader’s state writes documents with their record, and none for a record pruned meanwhile', async () => {
    const writes = new HeldWrites();
    const state = leaderState(writes);
    const document = {
      kind: 'attestation',
      imageId: UPLOAD.imageId,
      uploadId: UPLOAD.id,
      text: '{}',
    } as const;
    const ready = state.updateUpload(UPLOAD.id, { seen: true }, [document]);
    await turn();
    const pruned = state.change({ prunedUploads: [UPLOAD.id] });
    writes.release();
    await ready;
    await turn();
    const late = state.updateUpload(UPLOAD.id, { seen: true }, [document]);
    writes.release();
    await pruned;
    await turn();
    writes.release();
    await late;
    assert.deepEqual(
      writes.written.map(({ documents }) => documents),
      [[document], [], []],
    );
  });

  it('the leader’s state does not restore a record that was pruned meanwhile', async () => {
    const writes = new HeldWrites();
    const state = leaderState(writes);
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
