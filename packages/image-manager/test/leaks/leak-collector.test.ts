import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import type { ActContext } from '../../src/acts/act-context.ts';
import { LeakCollector } from '../../src/leaks/leak-collector.ts';
import { LedState } from '../../src/led-state.ts';
import type { Leadership } from '../../src/store/state-store.ts';
import { Hold } from '../hold.ts';
import { SiteProvider } from '../site-provider.ts';
import { build, upload } from '../store/records.ts';

const OWNER = 'ownerabc';
const INTERVAL = 600_000;

/** Of a store that takes everything. */
const LEADERSHIP = { write: async () => {} } as unknown as Leadership;

/** A collector, its provider, its records and its clock. */
class Collection {
  readonly provider = new SiteProvider({ name: 'cloud' });
  readonly log = new RecordingLogger();
  readonly state: LedState;
  readonly #collector: LeakCollector;
  readonly #stop = new AbortController();
  now = 0;
  changes = 0;

  constructor() {
    this.state = new LedState({ builds: new Map(), uploads: new Map() }, LEADERSHIP);
    const timing = {
      retryDelay: 60,
      longestRetryDelay: 3600,
      leakInterval: INTERVAL / 1000,
      absenceLimit: 1800,
    };
    const offered = { builds: new Set<string>(), uploads: new Set<string>(), deletes: new Set<string>() };
    this.#collector = new LeakCollector({
      state: this.state,
      owner: OWNER,
      configuration: () => ({
        diskimages: [],
        providers: [{ name: 'cloud', pause: false, uploadTimeout: 3600, images: [] }],
        timing,
      }),
      observe: async () => ({ offered, isComplete: true }),
      provider: () => this.provider,
      logger: this.log,
      now: () => this.now,
      elapsed: () => this.now,
    } as unknown as ActContext);
  }

  begin(): void {
    this.#collector.lookWhenDue(this.#stop.signal, () => {
      this.changes += 1;
    });
  }

  async look(): Promise<void> {
    this.begin();
    await this.#collector.idle();
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('enough'));
    await this.#collector.idle();
  }
}

test('a leak goes at the second look, an interval after the first', async () => {
  const collection = new Collection();
  const { provider } = collection;
  provider.plant({ externalId: 'leak', uploadId: `0000000009-${OWNER}` });
  await collection.look();
  collection.now = INTERVAL - 1;
  await collection.look();
  assert.equal(provider.listings, 1);
  assert.equal(provider.images.size, 1);
  collection.now = INTERVAL;
  await collection.look();
  assert.equal(provider.listings, 2);
  assert.equal(provider.images.size, 0);
  assert.equal(collection.changes, 2);
});

test('the interval runs from the end of a look, however long it took; there is one look at a time', async () => {
  const collection = new Collection();
  const { provider } = collection;
  const hold = new Hold();
  provider.beforeList = (signal) => hold.wait(signal);
  provider.plant({ externalId: 'leak', uploadId: `0000000009-${OWNER}` });
  collection.begin();
  await hold.reached;
  collection.now = INTERVAL;
  collection.begin();
  hold.release();
  await collection.look();
  collection.now = 2 * INTERVAL - 1;
  await collection.look();
  assert.equal(provider.listings, 1);
  assert.equal(provider.images.size, 1);
});

test('a leak that cannot be removed is tried again at the next look, and holds up no other', async () => {
  const collection = new Collection();
  const { provider, log } = collection;
  for (const number of [8, 9]) {
    provider.plant({ externalId: `leak ${number}`, uploadId: `000000000${number}-${OWNER}` });
  }
  let refusals = 0;
  provider.beforeDelete = () => {
    refusals += 1;
    if (refusals === 1) throw new Error('it is in use');
  };
  for (const time of [0, 1]) {
    collection.now = time * INTERVAL;
    await collection.look();
  }
  assert.deepEqual([...provider.images.keys()], ['leak 8']);
  assert.match(log.lines[1] ?? '', /^warn leak: image leak 8 .* cannot be removed now, .*: it is in use$/);
  collection.now = 2 * INTERVAL;
  await collection.look();
  assert.equal(provider.images.size, 0);
});

test('an upload counts as removed by somebody when it was listed once, and twice not', async () => {
  const collection = new Collection();
  const { state, provider } = collection;
  const of = build(OWNER, 1, { state: 'ready' });
  const record = upload(OWNER, 2, of, { state: 'ready', externalId: 'x', endedAt: -1 });
  await state.change({ builds: [of], uploads: [record] });
  provider.plant({ externalId: 'x', uploadId: record.id });
  await collection.look();
  assert.equal(state.uploads.get(record.id)?.seen, true);
  provider.images.clear();
  const states: unknown[] = [];
  for (const time of [1, 2]) {
    collection.now = time * INTERVAL;
    await collection.look();
    states.push(state.uploads.get(record.id)?.state);
  }
  assert.deepEqual(states, ['ready', 'deleted']);
});

test('a look that is stopped says nothing', async () => {
  const collection = new Collection();
  const hold = new Hold();
  collection.provider.beforeList = (signal) => hold.wait(signal);
  collection.begin();
  await hold.reached;
  await collection.stop();
  assert.deepEqual(collection.log.lines, []);
});
