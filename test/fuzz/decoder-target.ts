import assert from 'node:assert/strict';
import { ProtocolError } from '@nodepool-builder/gearman-node';
import { PacketDecoder } from '../../packages/gearman-node/src/codec/decoder.ts';
import type { Packet } from '../../packages/gearman-node/src/codec/packet.ts';
import { PACKETS } from '../../packages/gearman-node/src/packets.ts';
import type { FuzzTarget } from './fuzz.ts';
import { type HostilePacket, hostilePackets } from './hostile-packets.ts';

/** Smaller than the largest generated packets, so that the limit is also tested. */
const MAX_PACKET_SIZE = 64 * 1024;

/** Result of decoding a stream: packets and lines, and the code of the error that ended it. */
interface Outcome {
  readonly out: readonly string[];
  readonly error: string | undefined;
}

/** A decoder: the packets, or the ProtocolError, do not depend on the chunks. */
export const decoderTarget: FuzzTarget = {
  name: 'decoder',
  open: async () => ({
    sessions: hostilePackets({
      magic: 'REQ',
      connections: 1,
      maxPackets: 30,
      handles: ['H:x:1', 'H:x:2'],
      functions: ['f', 'g'],
      lines: ['status', 'x'.repeat(8190), 'y'.repeat(8200)],
    }),
    run: async (session) => check(session),
    close: async () => {},
  }),
};

function check(session: readonly HostilePacket[]): void {
  const stream = Buffer.concat(session.map(({ bytes }) => bytes));
  const withLines = session.length % 2 === 0;
  const whole = decode([stream], withLines);
  for (const size of chunkSizes(stream.length, session.length)) {
    assert.deepEqual(decode(cut(stream, size), withLines), whole, `in chunks of ${size} bytes`);
  }
}

/** Chunk sizes: single bytes for short streams, otherwise sizes that split each header at another offset. */
function chunkSizes(length: number, seed: number): number[] {
  return length < 2000 ? [1, 2 + seed] : [7 + seed, 4096];
}

function cut(stream: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < stream.length; at += size) chunks.push(stream.subarray(at, at + size));
  return chunks;
}

function decode(chunks: readonly Buffer[], withLines: boolean): Outcome {
  const out: string[] = [];
  const onLine = (line: Buffer): void => void out.push(`LINE ${line.toString('latin1')}`);
  const decoder = new PacketDecoder({
    maxPacketSize: MAX_PACKET_SIZE,
    onPacket: (packet) => out.push(described(packet)),
    ...(withLines ? { onLine } : {}),
  });
  for (const [index, chunk] of chunks.entries()) {
    try {
      decoder.decode(chunk);
    } catch (error) {
      assert.ok(error instanceof ProtocolError, `${String(error)} is no ProtocolError`);
      const before = out.length;
      for (const later of chunks.slice(index + 1, index + 3)) decoder.decode(later);
      assert.equal(out.length, before, 'a packet came out after the error');
      return { out, error: error.code };
    }
  }
  return { out, error: undefined };
}

function described(packet: Packet): string {
  const values = PACKETS[packet.name].arguments.map((argument) => packet.key(argument));
  return [packet.magic, packet.name, ...values].join('|');
}
