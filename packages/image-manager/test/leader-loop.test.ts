import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ManagerLeadership, ManagerStore, StateStore } from '@nodepool-builder/image-manager';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { StoreError } from '../src/errors.ts';
import { Hold } from './hold.ts';
import { ManagerSite } from './manager-site.ts';

/** A store whose leadership can be lost, as on a broken connection to PostgreSQL. */
class LosableStore {
  readonly #store: StateStore;
  #lost = new AbortController();
  /** Number of elections. */
  terms = 0;
  /** The next election waits for this promise. */
  mayLead: Promise<void> = Promise.resolve();

  constructor(store: StateStore) {
    this.#store = store;
  }

  /** The store as a manager sees it. */
  get asStore(): ManagerStore {
    const store = this.#store;
    return {
      owner: store.owner,
      read: () => store.read(),
      requests: () => store.requests(),
      lead: (options) => this.#lead(options),
    };
  }

  lose(): void {
    this.#lost.abort(StoreError.notLeader('the store'));
  }

  async #lead(options?: { readonly signal?: AbortSignal }): Promise<ManagerLeadership> {
    await this.mayLead;
    const leadership = await this.#store.lead(options);
    this.#lost = new AbortController();
    this.terms += 1;
    const lost = this.#lost.signal;
    return {
      lost,
      takeNumbers: async (count) => {
        lost.throwIfAborted();
        return await leadership.takeNumbers(count);
      },
      write: async (change) => {
        lost.throwIfAborted();
        await leadership.write(change);
      },
      release: () => leadership.release(),
    };
  }
}

test('a manager that lost leadership starts nothing, and the next leader resumes what runs', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const hold = new Hold();
  builder.beforeBuild = ({ signal }) => hold.wait(signal);
  const losable = new LosableStore(site.store);
  site.manage(losable.asStore);
  await hold.reached;
  const again = Promise.withResolvers<void>();
  losable.mayLead = again.promise;
  losable.lose();
  await site.logged(/^warn leadership lost/);
  hold.release();
  await waitUntil('the end of the build', () => builder.endedJobs === 1);
  const [build] = (await site.store.read()).builds.values();
  assert.equal(build?.state, 'building');
  assert.deepEqual(builder.jobsOf('image-upload'), []);
  again.resolve();
  const imageId = await site.untilInUse();
  assert.equal(imageId, build?.id);
  assert.equal(builder.jobsOf('image-build').length, 1);
  assert.equal(losable.terms, 2);
});

test('a write without leadership ends the leader loop, and the manager is elected again', async (t) => {
  const site = await ManagerSite.start(t);
  const builder = await site.builder();
  const losable = new LosableStore(site.store);
  const hold = new Hold();
  site.provider('east').beforeUpload = (signal) => hold.wait(signal);
  site.manage(losable.asStore);
  await hold.reached;
  losable.lose();
  hold.release();
  await site.untilInUse();
  assert.equal(losable.terms, 2);
  assert.equal(builder.jobsOf('image-build').length, 1);
  assert.equal((await site.store.read()).uploads.size, 2);
});
