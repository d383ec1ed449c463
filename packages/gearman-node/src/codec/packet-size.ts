import { GearmanError } from '../errors.ts';
import type { ArgumentValue, PacketName } from '../packets.ts';
import { DEFAULT_MAX_PACKET_SIZE } from './decoder.ts';
import { HEADER_SIZE } from './packet.ts';

/** @throws GearmanError `packet-too-large` for a packet that a peer with the same limit rejects */
export function checkPacketSize(
  name: PacketName,
  args: readonly ArgumentValue[],
  limit: number = DEFAULT_MAX_PACKET_SIZE,
): void {
  // A UTF-16 code unit takes at most three bytes. An exact count takes ten times as long.
  if (sizeOf(args, (text) => 3 * text.length) <= limit) return;
  const size = sizeOf(args, (text) => Buffer.byteLength(text));
  if (size > limit) throw tooLarge(`a ${name}`, size, limit);
}

export function tooLarge(what: string, size: number, limit: number = DEFAULT_MAX_PACKET_SIZE): GearmanError {
  const message = `${what} of ${size} bytes exceeds the limit of ${limit}; raise maxPacketSize`;
  return new GearmanError('packet-too-large', message);
}

function sizeOf(args: readonly ArgumentValue[], lengthOf: (text: string) => number): number {
  let size = HEADER_SIZE + Math.max(0, args.length - 1);
  for (const arg of args) size += typeof arg === 'object' ? arg.length : lengthOf(String(arg));
  return size;
}
