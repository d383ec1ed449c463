import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Clock } from '../../src/http/retry-policy.ts';
import {
  type RetriableError,
  type Retry,
  RetryBudget,
  RetryPolicy,
  retryAfterSeconds,
  retryText,
  watchRetries,
} from '../../src/http/retry-policy.ts';

const LIMITS = { attempts: 6, firstDelay: 1, maxDelay: 30, maxRetryAfter: 120 };

/** A clock that advances only during sleeps. */
class ManualClock implements Clock {
  readonly sleeps: number[] = [];
  #now = 0;

  now(): number {
    return this.#now;
  }

  async sleep(milliseconds: number): Promise<void> {
    this.sleeps.push(milliseconds);
    this.#now += milliseconds;
  }
}

class TestError extends Error implements RetriableError {
  readonly retriable: boolean;
  readonly retryAfter: number | undefined;

  constructor(message: string, retriable: boolean, retryAfter?: number) {
    super(message);
    this.retriable = retriable;
    this.retryAfter = retryAfter;
  }
}

/** Retries work that fails a number of times, and then returns the number of the attempt. */
async function retry(
  clock: ManualClock,
  failures: number,
  { retriable = true, retryAfter, random = 0, ...options }: RetryTest = {},
): Promise<number> {
  const policy = new RetryPolicy(LIMITS, { clock, random: () => random });
  const work = async (attempt: number): Promise<number> => {
    if (attempt <= failures) throw new TestError(`attempt ${attempt} failed`, retriable, retryAfter);
    return attempt;
  };
  return await policy.run(work, options);
}

interface RetryTest {
  readonly retriable?: boolean;
  readonly retryAfter?: number;
  readonly random?: number;
  readonly mayRetry?: () => boolean;
  readonly onRetry?: (retry: Retry) => void;
}

describe('a retry policy', () => {
  it('a retry policy doubles the delay each time, and stops after its attempts', async () => {
    const clock = new ManualClock();
    await assert.rejects(retry(clock, 9), { message: 'attempt 6 failed' });
    assert.deepEqual(clock.sleeps, [1000, 2000, 4000, 8000, 16_000]);
  });

  it('a retry policy limits the delay', () => {
    const policy = new RetryPolicy({ ...LIMITS, attempts: 100 }, { random: () => 0 });
    assert.deepEqual([policy.delayAfter(5), policy.delayAfter(6), policy.delayAfter(99)], [16, 30, 30]);
    assert.equal(policy.delayAfter(100), undefined);
  });

  it('a retry policy cuts up to half of a delay as jitter', async () => {
    const clock = new ManualClock();
    assert.equal(await retry(clock, 2, { random: 0.5 }), 3);
    assert.deepEqual(clock.sleeps, [750, 1500]);
  });

  it('a retry policy waits at least for Retry-After', async () => {
    const clock = new ManualClock();
    assert.equal(await retry(clock, 1, { retryAfter: 20 }), 2);
    assert.deepEqual(clock.sleeps, [20_000]);
  });

  it('a retry policy does not wait for a Retry-After above its limit', async () => {
    const clock = new ManualClock();
    await assert.rejects(retry(clock, 1, { retryAfter: 121 }), { message: 'attempt 1 failed' });
    assert.deepEqual(clock.sleeps, []);
  });

  it('a retry policy does not retry an error that is not retriable, or that its caller excludes', async () => {
    const clock = new ManualClock();
    await assert.rejects(retry(clock, 1, { retriable: false }), { message: 'attempt 1 failed' });
    await assert.rejects(retry(clock, 1, { mayRetry: () => false }), { message: 'attempt 1 failed' });
    assert.deepEqual(clock.sleeps, []);
  });

  it('a retry policy reports each retry before its delay', async () => {
    const reports: unknown[] = [];
    await retry(new ManualClock(), 1, {
      onRetry: (next) => void reports.push(`${next.error.message}; ${retryText(next)}`),
    });
    assert.deepEqual(reports, ['attempt 1 failed; retrying in 1.0 s (attempt 2 of 6)']);
  });

  it('a retry that only a time limits is announced without a number of attempts', () => {
    const text = retryText({ attempt: 2, attempts: Number.POSITIVE_INFINITY, delay: 5 });
    assert.equal(text, 'retrying in 5.0 s (attempt 2)');
  });
});

/** Creates a listener that collects retries. */
function report(into: unknown[]) {
  return (found: Retry | undefined) =>
    void into.push(found && [found.error.message, found.attempt, found.attempts, found.delay]);
}

it('an operation is notified of its requests’ retries, and when they have ended', async () => {
  const outer: unknown[] = [];
  const inner: unknown[] = [];
  await watchRetries(report(outer), async () => {
    await watchRetries(report(inner), () => retry(new ManualClock(), 2));
    await retry(new ManualClock(), 0);
    await assert.rejects(retry(new ManualClock(), 1, { retriable: false }));
  });
  await retry(new ManualClock(), 1);
  const expected = [['attempt 1 failed', 2, 6, 1], ['attempt 2 failed', 3, 6, 2], undefined];
  assert.deepEqual([outer, inner], [expected, expected]);
});

describe('the budget of an operation', () => {
  const operation = (seconds: number): { clock: ManualClock; budget: RetryBudget } => {
    const clock = new ManualClock();
    return { clock, budget: new RetryBudget(seconds, () => clock.now()) };
  };

  it('an operation’s retry budget is shared by its requests, and starts with the first failure', async () => {
    const { clock, budget } = operation(10);
    await budget.run(async () => {
      await assert.rejects(retry(clock, 9));
      assert.deepEqual(clock.sleeps, [1000, 2000, 4000]);
      await assert.rejects(retry(clock, 9));
      assert.deepEqual(clock.sleeps, [1000, 2000, 4000, 1000]);
    });
  });

  it('an operation’s retry budget does not count an outage that has passed', async () => {
    const { clock, budget } = operation(10);
    await budget.run(async () => {
      await retry(clock, 1);
      assert.deepEqual(clock.sleeps.splice(0), [1000]);
      await assert.rejects(retry(clock, 9));
      assert.deepEqual(clock.sleeps, [1000, 2000, 4000]);
    });
  });

  it('an operation’s retry budget does not limit a cleanup that has its own', async () => {
    const { clock, budget } = operation(0);
    const cleanup = new RetryBudget(10, () => clock.now());
    await budget.run(async () => {
      await assert.rejects(retry(clock, 9));
      assert.deepEqual(clock.sleeps, []);
      await assert.rejects(cleanup.run(() => retry(clock, 9)));
      assert.deepEqual(clock.sleeps, [1000, 2000, 4000]);
    });
  });
});

it('the header Retry-After contains a number of seconds or a date', () => {
  const now = Date.UTC(2026, 0, 1);
  assert.equal(retryAfterSeconds('20', now), 20);
  assert.equal(retryAfterSeconds('Thu, 01 Jan 2026 00:01:00 GMT', now), 60);
  assert.equal(retryAfterSeconds('Wed, 31 Dec 2025 00:00:00 GMT', now), 0);
  assert.equal(retryAfterSeconds('soon', now), undefined);
  assert.equal(retryAfterSeconds(undefined, now), undefined);
});
