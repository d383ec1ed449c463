import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import type { Clock } from '@nodepool-builder/image-builder/module-kit';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { Poller, type PollerOptions } from '../../src/polling/poller.ts';

/** A clock whose sleeps last until the test ends them. */
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

  /** Waits for the sleep under way, and tells its length. */
  async asleep(): Promise<number> {
    while (this.#sleeps.length === 0) {
      this.#began = Promise.withResolvers();
      await this.#began.promise;
    }
    return this.#sleeps[0]?.milliseconds ?? 0;
  }

  /** Ends the sleep under way, and tells how long it would have been. */
  async pass(): Promise<number> {
    await this.asleep();
    const sleep = this.#sleeps.shift();
    sleep?.end();
    return sleep?.milliseconds ?? 0;
  }
}

/** Counts looks, and tells when there were so many. */
class Looks {
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
  readonly looks: Looks;
}

/** A poller that ends with the test. */
function poll(t: TestContext, look: PollerOptions['look'], more: Partial<PollerOptions> = {}): Wiring {
  const clock = new HeldClock();
  const logger = new RecordingLogger();
  const looks = new Looks();
  const poller = new Poller({
    what: 'the builds of noble',
    interval: 60_000,
    random: () => 0,
    look: async (signal) => {
      looks.add();
      await look(signal);
    },
    logger,
    clock,
    ...more,
  });
  t.after(() => poller.close());
  return { poller, clock, logger, looks };
}

async function succeed(): Promise<void> {}

/** The whole pause: the part that nothing shortens, and the rest. */
async function pause(clock: HeldClock): Promise<number> {
  return (await clock.pass()) + (await clock.pass());
}

describe('a poller', () => {
  test('looks at once, and again after each interval', async (t) => {
    const { clock, looks } = poll(t, succeed);
    await clock.asleep();
    assert.equal(looks.count, 1);
    assert.equal(await pause(clock), 60_000);
    await clock.asleep();
    assert.equal(looks.count, 2);
  });

  test('looks within an interval, not all at the same time', async (t) => {
    const { clock } = poll(t, succeed, { random: () => 0.999 });
    const length = await pause(clock);
    assert.ok(length > 47_000 && length < 49_000, `${length}`);
  });

  test('looks less often while looks fail, then as before', async (t) => {
    let failures = 6;
    const { clock, logger } = poll(t, async () => {
      failures -= 1;
      if (failures >= 0) throw new Error('the API is away');
    });
    const pauses: number[] = [];
    for (let count = 0; count < 7; count += 1) pauses.push((await pause(clock)) / 1000);
    assert.deepEqual(pauses, [120, 240, 480, 900, 900, 900, 60]);
    assert.equal(logger.lines.length, 6);
    assert.equal(logger.lines[0], 'warn looking for the builds of noble failed: the API is away');
  });

  test('keeps to an interval that is longer than any pause after failures', async (t) => {
    const { clock } = poll(t, () => Promise.reject(new Error('away')), { interval: 7_200_000 });
    assert.equal(await pause(clock), 7_200_000);
  });

  test('looks when it is woken', async (t) => {
    const { clock, poller, looks } = poll(t, succeed);
    await clock.pass();
    assert.equal(await clock.asleep(), 59_000);
    poller.wake();
    await looks.reach(2);
    assert.equal(await clock.asleep(), 1000);
  });

  test('looks once more when it is woken while it looks, however often', async (t) => {
    const first = Promise.withResolvers<void>();
    const { clock, poller, looks } = poll(t, () => first.promise);
    for (let count = 0; count < 100; count += 1) poller.wake();
    first.resolve();
    // a second passes all the same
    assert.equal(await clock.pass(), 1000);
    await looks.reach(2);
    assert.equal(await clock.pass(), 1000);
    assert.equal(await clock.asleep(), 59_000);
    assert.equal(looks.count, 2);
  });

  test('ends the look under way when it is closed', async (t) => {
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

  test('ends its rest when it is closed', async (t) => {
    const { poller, clock, looks } = poll(t, succeed);
    await clock.asleep();
    await poller.close();
    assert.equal(looks.count, 1);
  });
});
