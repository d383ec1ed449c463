import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import type { Clock } from '@nodepool-builder/image-builder/plugin';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { type Poller, type PollerOptions, startPoller } from '../../src/polling/poller.ts';

/** A clock whose sleeps the test ends. */
class HeldClock implements Clock {
  readonly #sleeps: { readonly milliseconds: number; readonly end: () => void }[] = [];
  #began = Promise.withResolvers<void>();

  now(): number {
    return 0;
  }

  sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleep = { milliseconds, end: resolve };
    const abort = (): void => {
      this.#sleeps.splice(this.#sleeps.indexOf(sleep), 1);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    this.#sleeps.push(sleep);
    this.#began.resolve();
    return promise;
  }

  /** Waits for a sleep. Returns its length. */
  async asleep(): Promise<number> {
    while (this.#sleeps.length === 0) {
      this.#began = Promise.withResolvers();
      await this.#began.promise;
    }
    return this.#sleeps[0]?.milliseconds ?? 0;
  }

  /** Ends a sleep. Returns its length. */
  async pass(): Promise<number> {
    await this.asleep();
    const sleep = this.#sleeps.shift();
    sleep?.end();
    return sleep?.milliseconds ?? 0;
  }
}

/** Counts polls. */
class Polls {
  count = 0;
  readonly #waiting = new Map<number, () => void>();

  add(): void {
    this.count += 1;
    this.#waiting.get(this.count)?.();
  }

  reach(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.count >= count) resolve();
    else this.#waiting.set(count, resolve);
    return promise;
  }
}

interface Wiring {
  readonly poller: Poller;
  readonly clock: HeldClock;
  readonly logger: RecordingLogger;
  readonly polls: Polls;
}

/** Starts a poller that ends with the test. */
function poll(t: TestContext, task: PollerOptions['poll'], more: Partial<PollerOptions> = {}): Wiring {
  const clock = new HeldClock();
  const logger = new RecordingLogger();
  const polls = new Polls();
  const poller = startPoller({
    name: 'noble',
    interval: 60_000,
    random: () => 0,
    poll: async (signal) => {
      polls.add();
      await task(signal);
    },
    logger,
    clock,
    ...more,
  });
  t.after(() => poller.close());
  return { poller, clock, logger, polls };
}

async function succeed(): Promise<void> {}

/** Length of a pause: the min part, and the rest. */
async function pause(clock: HeldClock): Promise<number> {
  return (await clock.pass()) + (await clock.pass());
}

describe('a poller', () => {
  test('the poller polls at once, and after each interval', async (t) => {
    const { clock, polls } = poll(t, succeed);
    await clock.asleep();
    assert.equal(polls.count, 1);
    assert.equal(await pause(clock), 60_000);
    await clock.asleep();
    assert.equal(polls.count, 2);
  });

  test('the poller shortens intervals at random', async (t) => {
    const { clock } = poll(t, succeed, { random: () => 0.999 });
    const length = await pause(clock);
    assert.ok(length > 47_000 && length < 49_000, `${length}`);
  });

  test('the poller polls less often while polls fail', async (t) => {
    let failures = 6;
    const { clock, logger } = poll(t, async () => {
      failures -= 1;
      if (failures >= 0) throw new Error('the API is away');
    });
    const pauses: number[] = [];
    for (let count = 0; count < 7; count += 1) pauses.push((await pause(clock)) / 1000);
    assert.deepEqual(pauses, [120, 240, 480, 900, 900, 900, 60]);
    assert.equal(logger.lines.length, 6);
    assert.equal(logger.lines[0], 'warn polling for new builds of noble failed: the API is away');
  });

  test('the poller does not extend an interval that is longer than its max pause', async (t) => {
    const { clock } = poll(t, () => Promise.reject(new Error('away')), { interval: 7_200_000 });
    assert.equal(await pause(clock), 7_200_000);
  });

  test('the poller polls when it is woken', async (t) => {
    const { clock, poller, polls } = poll(t, succeed);
    await clock.pass();
    assert.equal(await clock.asleep(), 59_000);
    poller.wake();
    await polls.reach(2);
    assert.equal(await clock.asleep(), 1000);
  });

  test('the poller polls once more after it was woken during a poll, however often', async (t) => {
    const first = Promise.withResolvers<void>();
    const { clock, poller, polls } = poll(t, () => first.promise);
    for (let count = 0; count < 100; count += 1) poller.wake();
    first.resolve();
    // The min pause applies.
    assert.equal(await clock.pass(), 1000);
    await polls.reach(2);
    assert.equal(await clock.pass(), 1000);
    assert.equal(await clock.asleep(), 59_000);
    assert.equal(polls.count, 2);
  });

  test('the poller aborts the current poll when it is closed', async (t) => {
    let reason: unknown;
    const { poller, logger } = poll(t, async (signal) => {
      await once(signal, 'abort');
      ({ reason } = signal);
      signal.throwIfAborted();
    });
    await poller.close();
    assert.equal((reason as Error).name, 'AbortError');
    assert.deepEqual(logger.lines, []);
  });

  test('the poller ends its pause when it is closed', async (t) => {
    const { poller, clock, polls } = poll(t, succeed);
    await clock.asleep();
    await poller.close();
    assert.equal(polls.count, 1);
  });
});
