import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { InstanceAddress, Probe } from './instance-provider.ts';

/**
 * Time limits of the attempts, in milliseconds, repeated in this order. Most are short: a port forwarder may hold a
 * connection from before the instance was up, without noticing that it is up now. Some are longer, for the slow
 * services of an emulated machine.
 */
const TIMEOUTS: readonly number[] = [2_000, 2_000, 5_000];

/** Milliseconds between two attempts. */
const INTERVAL = 250;

/**
 * Waits until the service at an address answers. One attempt at a time: servers accept few clients that have not
 * logged in.
 *
 * @param check called before each attempt; it throws if the service can no longer answer
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
    const answered = await probe(
      address,
      signal === undefined ? limit : AbortSignal.any([limit, signal]),
    ).then(
      () => true,
      () => false,
    );
    if (answered) return;
    // The next round checks the signal.
    await delay(INTERVAL, undefined, { signal }).catch(() => {});
  }
}

/** Limit in bytes of the lines that may precede the identification of an SSH server (RFC 4253, section 4.2). */
const LONGEST_GREETING = 16 * 1024;

/**
 * A {@link Probe} for an SSH server. An open port is not enough: a forwarder accepts connections before the instance
 * does.
 */
export async function probeSsh(address: InstanceAddress, signal: AbortSignal): Promise<void> {
  const socket = new Socket({ signal });
  socket.connect(address.port, address.host);
  let said = '';
  for await (const chunk of socket) {
    said += String(chunk);
    if (/^SSH-/m.test(said)) return;
    if (said.length > LONGEST_GREETING) break;
  }
  throw new Error(`${authorityOf(address)} does not speak SSH`);
}

/** An address as URLs and people write it (RFC 3986, section 3.2): of IPv6 in brackets. */
export function authorityOf({ host, port }: InstanceAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
