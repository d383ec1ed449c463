import { Socket } from 'node:net';
import { authorityOf } from './authority-of.ts';
import type { InstanceAddress } from './instance-provider.ts';

/** Lines may come before the one that an SSH server begins with (RFC 4253, section 4.2), but not for ever. */
const LONGEST_GREETING = 16 * 1024;

/**
 * Whether an SSH server answers: a {@link Probe}. That the port accepts connections says nothing, for what forwards
 * it accepts them before the instance does.
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
