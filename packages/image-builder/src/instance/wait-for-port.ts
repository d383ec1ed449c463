import { setTimeout as delay } from 'node:timers/promises';
import type { InstanceAddress, Probe } from './instance-provider.ts';

/**
 * Timeouts of the attempts, in milliseconds, repeated in this order. Most are short, because a port forwarder may hold
 * a connection from before the instance was up, without noticing that it is up now. Some are longer, for the slow
 * services of an emulated machine.
 */
const TIMEOUTS: readonly number[] = [2_000, 2_000, 5_000];

/** Milliseconds between two attempts. */
const INTERVAL = 250;

/**
 * Waits until the service at an address responds. Makes one attempt at a time, because servers accept few clients that
 * have not logged in.
 *
 * @param check called before each attempt; it throws if the service can no longer respond
 * @throws the signal's reason
 */
export async function waitForPort(
  address: InstanceAddress,
  probe: Probe,
  check: () => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  for (let round = 0; ; round += 1) {
    signal?.throwIfAborted();
    await check();
    const limit = AbortSignal.timeout(TIMEOUTS[round % TIMEOUTS.length] ?? 0);
    const accepted = await probe(
      address,
      signal === undefined ? limit : AbortSignal.any([limit, signal]),
    ).then(
      () => true,
      () => false,
    );
    if (accepted) return;
    // The next round checks the signal.
    await delay(INTERVAL, undefined, { signal }).catch(() => {});
  }
}
