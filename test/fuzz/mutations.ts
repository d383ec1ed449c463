/** Corrupts bytes. One number selects the offset, another the kind of corruption. */
export type Mutation = (bytes: Buffer, at: number, value: number) => Buffer;

/** Corruptions of a body that keep the framing, because the length is set afterwards. */
export const BODY_MUTATIONS: readonly Mutation[] = [
  function replaceByte(bytes, at, value) {
    const spoilt = Buffer.from(bytes);
    if (spoilt.length > 0) spoilt[at % spoilt.length] = value;
    return spoilt;
  },
  function flipBit(bytes, at, value) {
    const spoilt = Buffer.from(bytes);
    const index = at % Math.max(spoilt.length, 1);
    if (spoilt.length > 0) spoilt[index] = (spoilt[index] as number) ^ (1 << (value % 8));
    return spoilt;
  },
  function cutTail(bytes, at) {
    return bytes.subarray(0, at % (bytes.length + 1));
  },
  function cutHead(bytes, at) {
    return bytes.subarray(at % (bytes.length + 1));
  },
  function insertNuls(bytes, at, value) {
    const index = at % (bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, index), Buffer.alloc(1 + (value % 3)), bytes.subarray(index)]);
  },
  function insertHeader(bytes, at, value) {
    const index = at % (bytes.length + 1);
    const header = headerOf('\0REQ', value % 43, value);
    return Buffer.concat([bytes.subarray(0, index), header, bytes.subarray(index)]);
  },
  function repeat(bytes, _at, value) {
    return Buffer.concat(Array.from({ length: 2 + (value % 4) }, () => bytes));
  },
  function addNul(bytes) {
    return Buffer.concat([bytes, Buffer.alloc(1)]);
  },
];

const MAGICS = ['\0REQ', '\0RES', '\0REX', 'REQ\0', 'GET ', '\x16\x03\x01\x02'];
const LENGTHS = [0, 1, 12, 0x7fff_ffff, 0x8000_0000, 0xffff_fff4, 0xffff_ffff];

/** Corruptions of the framing, most of which end a connection. */
export const FRAME_MUTATIONS: readonly Mutation[] = [
  function otherMagic(bytes, at) {
    const spoilt = Buffer.from(bytes);
    spoilt.write(MAGICS[at % MAGICS.length] as string, 'latin1');
    return spoilt;
  },
  function otherType(bytes, _at, value) {
    const spoilt = Buffer.from(bytes);
    spoilt.writeUInt32BE(value % 2 === 0 ? value : 0xffff_ff00 + value, 4);
    return spoilt;
  },
  function otherLength(bytes, at) {
    const spoilt = Buffer.from(bytes);
    spoilt.writeUInt32BE(LENGTHS[at % LENGTHS.length] as number, 8);
    return spoilt;
  },
  function shiftLength(bytes, at, value) {
    const spoilt = Buffer.from(bytes);
    spoilt.writeUInt32BE(Math.max(0, bytes.length - 12 + (at % 2 === 0 ? 1 : -1) * (value % 16)), 8);
    return spoilt;
  },
  function cutShort(bytes, at) {
    return bytes.subarray(0, at % bytes.length);
  },
  function noiseBefore(bytes, at, value) {
    return Buffer.concat([Buffer.alloc(1 + (at % 30), value), bytes]);
  },
];

/** Returns magic, type and length of a packet. */
export function headerOf(magic: string, type: number, length: number): Buffer {
  const header = Buffer.alloc(12);
  header.write(magic, 'latin1');
  header.writeUInt32BE(type, 4);
  header.writeUInt32BE(length, 8);
  return header;
}
