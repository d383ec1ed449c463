import { setTimeout as delay } from 'node:timers/promises';
import type { InstanceAddress, Probe } from './instance-provider.ts';

/**
 * How long the tries may take, in milliseconds, again and again in this order. What forwards the port may hold a
 * connection that was made before the instance was up, and not notice for long that it is: most tries are short. On
 * an interpreted machine a service may take its time: some are not.
 */
const TIMEOUTS: readonly number[] = [2_000, 2_000, 5_000];

/** Between two tries, in milliseconds. */
const INTERVAL = 250;

/**
 * Tries again and again until the service at an address answers. One try at a time: servers take few clients that
 * have not logged in.
 *
 * @param check called before each try: it throws if trying is of no use any more.
 * @throws the signal's reason
 */
export async function untilAnswered(
  address: InstanceAddress,
  probe: Probe,
  check: () => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  for (let round = 0; ; round += 1) {
    signal?.throwIfAborted();
    await check();
    const limit = AbortSignal.timeout(TIMEOUTS[round % TIMEOUTS.length] ?? 0);
    const answered = await probe(
      address,
      signal === undefined ? limit : AbortSignal.any([limit, signal]),
    ).then(
      () => true,
      () => false,
    );
    if (answered) return;
    // An abort is seen by the next round.
    await delay(INTERVAL, undefined, { signal }).catch(() => {});
  }
}
