import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OpenStackError, type OpenStackErrorCode } from '../../src/openstack-error.ts';
import { DEFAULT_RETRY_LIMITS, Patience } from '../../src/session/patience.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

const clock = (): ManualClock => new ManualClock();

function patienceOf(time: ManualClock, { random = 0, warnings = [] as string[] } = {}): Patience {
  const logger = { ...SILENT, warn: (text: string) => void warnings.push(text) };
  return new Patience({ limits: DEFAULT_RETRY_LIMITS, clock: time, logger, random: () => random });
}

/** Fails so often with this error, then succeeds with the number of tries. */
function failing(times: number, code: OpenStackErrorCode, retryAfter?: number): () => Promise<number> {
  let tried = 0;
  return async () => {
    tried += 1;
    if (tried <= times) throw new OpenStackError(code, `try ${tried} failed`, { retryAfter });
    return tried;
  };
}

describe('patience', () => {
  it('pauses twice as long each time, up to a limit, and gives up after six tries', async () => {
    const time = clock();
    await assert.rejects(
      patienceOf(time).retry(failing(Infinity, 'connection-failed'), {}),
      failsWith('connection-failed', 'try 6'),
    );
    assert.deepEqual(time.sleeps, [1000, 2000, 4000, 8000, 16_000]);
  });

  it('cuts up to a half of a pause at random', async () => {
    const time = clock();
    assert.equal(await patienceOf(time, { random: 0.5 }).retry(failing(2, 'service-unavailable'), {}), 3);
    assert.deepEqual(time.sleeps, [750, 1500]);
  });

  it('waits at least as long as the cloud says', async () => {
    const time = clock();
    assert.equal(await patienceOf(time).retry(failing(1, 'rate-limited', 20), {}), 2);
    assert.deepEqual(time.sleeps, [20_000]);
  });

  it('gives up at once when the cloud wants more than two minutes', async () => {
    const time = clock();
    await assert.rejects(
      patienceOf(time).retry(failing(1, 'rate-limited', 121), {}),
      failsWith('rate-limited', 'try 1'),
    );
    assert.deepEqual(time.sleeps, []);
  });

  it('does not repeat what will fail again, nor what the caller will not have repeated', async () => {
    const time = clock();
    await assert.rejects(patienceOf(time).retry(failing(1, 'forbidden'), {}), failsWith('forbidden'));
    await assert.rejects(
      patienceOf(time).retry(failing(1, 'connection-failed'), { again: () => false }),
      failsWith('connection-failed'),
    );
    assert.deepEqual(time.sleeps, []);
  });

  it('logs each failure with the pause', async () => {
    const warnings: string[] = [];
    await patienceOf(clock(), { warnings }).retry(failing(1, 'service-unavailable'), {});
    assert.deepEqual(warnings, ['try 1 failed; again in 1.0 s (try 1 of 6)']);
  });

  it('a defect is thrown as it is', async () => {
    const defect = new TypeError('defect');
    await assert.rejects(
      patienceOf(clock()).retry(() => Promise.reject(defect), {}),
      defect,
    );
  });
});
