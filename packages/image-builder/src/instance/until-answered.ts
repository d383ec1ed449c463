import { setTimeout as delay } from 'node:timers/promises';
import type { InstanceAddress, Probe } from './instance-provider.ts';

/** How long one try may take, in milliseconds: a service that is there speaks sooner, even of an interpreted machine. */
const PROBE_TIMEOUT = 5_000;

/** Between two tries, in milliseconds. */
const INTERVAL = 250;

/**
 * Tries again and again until the service at an address answers.
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
  for (;;) {
    await check();
    signal?.throwIfAborted();
    const limit = AbortSignal.timeout(PROBE_TIMEOUT);
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
