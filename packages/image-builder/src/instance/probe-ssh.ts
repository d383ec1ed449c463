import { Socket } from 'node:net';
import { authorityOf } from './authority-of.ts';
import type { InstanceAddress } from './instance-provider.ts';

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
