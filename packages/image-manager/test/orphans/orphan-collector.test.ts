import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { LeaderState } from '../../src/leader-state.ts';
import { OrphanCollector } from '../../src/orphans/orphan-collector.ts';
import type { ManagerLeadership } from '../../src/store/leadership.ts';
import type { TaskContext } from '../../src/tasks/tasks.ts';
import { Hold } from '../hold.ts';
import { SiteProvider } from '../site-provider.ts';
import { build, upload } from '../store/records.ts';

const OWNER = 'ownerabc';
const INTERVAL = 600_000;

/** Leadership of a store that accepts every change. */
const LEADERSHIP = { write: async () => {} } as unknown as ManagerLeadership;

/** A collector with its provider, records and clock. */
class Collection {
  readonly provider = new SiteProvider({ name: 'cloud' });
  readonly log = new RecordingLogger();
  readonly state: LeaderState;
  readonly #collector: OrphanCollector;
  readonly #stop = new AbortController();
  now = 0;
  changes = 0;

  constructor() {
    this.state = new LeaderState({ builds: new Map(), uploads: new Map(), pauses: new Map() }, LEADERSHIP);
    const timing = {
      retryDelay: 60,
      maxRetryDelay: 3600,
      orphanScanInterval: INTERVAL / 1000,
      absenceTimeout: 1800,
    };
    const offered = { builds: new Set<string>(), uploads: new Set<string>(), deletes: new Set<string>() };
    this.#collector = new OrphanCollector({
      state: this.state,
      owner: OWNER,
      configuration: () => ({
        diskimages: [],
        providers: [{ name: 'cloud', pause: false, uploadTimeout: 3600, images: [] }],
        timing,
      }),
      fleet: { status: async () => ({ offered, isComplete: true }) },
      provider: () => this.provider,
      logger: this.log,
      now: () => this.now,
      elapsed: () => this.now,
    } as unknown as TaskContext);
  }

  start(): void {
    this.#collector.scanWhenDue(this.#stop.signal, () => {
      this.changes += 1;
    });
  }

  async scan(): Promise<void> {
    this.start();
    await this.#collector.idle();
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('stopped'));
    await this.#collector.idle();
  }
}

test('an orphan is deleted by the second scan, an interval after the first', async () => {
  const collection = new Collection();
  const { provider } = collection;
  provider.plant({ externalId: 'orphan', uploadId: `0000000009-${OWNER}` });
  await collection.scan();
  collection.now = INTERVAL - 1;
  await collection.scan();
  assert.equal(provider.listings, 1);
  assert.equal(provider.images.size, 1);
  collection.now = INTERVAL;
  await collection.scan();
  assert.equal(provider.listings, 2);
  assert.equal(provider.images.size, 0);
  assert.equal(collection.changes, 2);
});

test('the orphan scan interval starts at the end of a scan, and scans do not overlap', async () => {
  const collection = new Collection();
  const { provider } = collection;
  const hold = new Hold();
  provider.beforeList = (signal) => hold.wait(signal);
  provider.plant({ externalId: 'orphan', uploadId: `0000000009-${OWNER}` });
  collection.start();
  await hold.reached;
  collection.now = INTERVAL;
  collection.start();
  hold.release();
  await collection.scan();
  collection.now = 2 * INTERVAL - 1;
  await collection.scan();
  assert.equal(provider.listings, 1);
  assert.equal(provider.images.size, 1);
});

test('an orphan scan deletes other orphans after a failed deletion, and the next scan retries it', async () => {
  const collection = new Collection();
  const { provider, log } = collection;
  for (const number of [8, 9]) {
    provider.plant({ externalId: `orphan ${number}`, uploadId: `000000000${number}-${OWNER}` });
  }
  let attempts = 0;
  provider.beforeDelete = () => {
    attempts += 1;
    if (attempts === 1) throw new Error('it is in use');
  };
  for (const time of [0, 1]) {
    collection.now = time * INTERVAL;
    await collection.scan();
  }
  assert.deepEqual([...provider.images.keys()], ['orphan 8']);
  assert.match(
    log.lines[1] ?? '',
    /^warn orphan: cannot delete image orphan 8 .*; the next scan retries: it is in use$/,
  );
  collection.now = 2 * INTERVAL;
  await collection.scan();
  assert.equal(provider.images.size, 0);
});

test('an orphan that one scan does not find counts as new in the next', async () => {
  const collection = new Collection();
  const { provider } = collection;
  for (const [time, isListed] of [true, false, true].entries()) {
    provider.images.clear();
    if (isListed) provider.plant({ externalId: 'orphan', uploadId: `0000000009-${OWNER}` });
    collection.now = time * INTERVAL;
    await collection.scan();
  }
  assert.equal(provider.images.size, 1);
});

test('a listed upload is missing after two scans without it, and ready once it is listed again', async () => {
  const collection = new Collection();
  const { state, provider } = collection;
  const of = build(OWNER, 1, { state: 'ready' });
  const record = upload(OWNER, 2, of, { state: 'ready', externalId: 'x', endedAt: -1 });
  await state.change({ builds: [of], uploads: [record] });
  provider.plant({ externalId: 'x', uploadId: record.id });
  await collection.scan();
  assert.equal(state.uploads.get(record.id)?.seen, true);
  const listed = new Map(provider.images);
  provider.images.clear();
  const states: unknown[] = [];
  for (const time of [1, 2, 3]) {
    if (time === 3) for (const [id, image] of listed) provider.images.set(id, image);
    collection.now = time * INTERVAL;
    await collection.scan();
    states.push(state.uploads.get(record.id)?.state);
  }
  assert.deepEqual(states, ['ready', 'missing', 'ready']);
  assert.equal(provider.images.size, 1);
});

test('an aborted orphan scan logs nothing', async () => {
  const collection = new Collection();
  const hold = new Hold();
  collection.provider.beforeList = (signal) => hold.wait(signal);
  collection.start();
  await hold.reached;
  await collection.stop();
  assert.deepEqual(collection.log.lines, []);
});
