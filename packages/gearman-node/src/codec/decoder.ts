import { ProtocolError } from '../errors.ts';
import { PACKET_TYPES, type PacketType } from '../packets.ts';
import { HEADER_SIZE, MAGIC_NUMBERS, type Magic, Packet } from './packet.ts';

/** Default maximum size of a packet: 64 MiB. */
export const DEFAULT_MAX_PACKET_SIZE: number = 64 * 1024 * 1024;

/**
 * Initial size of the buffer for a long packet. The buffer then grows to `GROWTH` times the bytes that have arrived, so
 * that a declared length alone allocates no memory.
 */
const FIRST_ALLOCATION = 64 * 1024;

const GROWTH = 32;

/**
 * Size of the part that is decoded of a packet over the limit. It covers all arguments but the payload, each of at most
 * 512 bytes.
 */
const OVERSIZED_HEAD = 2048;

const MAX_LINE_SIZE = 8192;
const NEWLINE = 0x0a;

const { REQ, RES } = MAGIC_NUMBERS;

/** Options of a {@link PacketDecoder}. */
export interface DecoderOptions {
  readonly onPacket: (packet: Packet) => void;
  /**
   * Called with each line of the admin text protocol, without its line ending. Only a server sets it: it then takes
   * input that does not begin with NUL as text.
   */
  readonly onLine?: (line: Buffer) => void;
  /** Maximum size of a packet in bytes, header included. Default 64 MiB. */
  readonly maxPacketSize?: number | undefined;
  /**
   * Called with the first 2 KiB of a packet whose payload exceeds the limit, and its full size. The rest is skipped.
   * Default: the packet is an error. A packet over the limit without a payload always is.
   */
  readonly onOversized?: ((packet: Packet, size: number) => void) | undefined;
}

/** Decodes a stream of bytes into packets. It owns no socket: chunks of any size go in, packets come out. */
export class PacketDecoder {
  readonly #options: DecoderOptions;
  readonly #maxPacketSize: number;
  /** The incomplete packet or line at the end of the input. */
  #held: Buffer = Buffer.alloc(0);
  #heldLength = 0;
  /** Remaining bytes of a packet over the limit, to be skipped. */
  #skipped = 0;
  #stopped = false;

  constructor(options: DecoderOptions) {
    this.#options = options;
    this.#maxPacketSize = options.maxPacketSize ?? DEFAULT_MAX_PACKET_SIZE;
  }

  /**
   * Decodes the next bytes of the stream and passes on each packet that they complete, in order. Packets are views of
   * the chunk, which must not be modified afterwards.
   *
   * @throws ProtocolError for a bad magic, an unknown type, an excessive length or missing arguments. The stream cannot
   * be resynchronised: later bytes are ignored. WORK_* packets may lack the NUL before an empty payload, as Perl's
   * workers send them.
   */
  decode(chunk: Buffer): void {
    try {
      let at = 0;
      while (at < chunk.length && !this.#stopped) {
        if (this.#skipped > 0) at = this.#skip(chunk, at);
        else at = this.#heldLength > 0 ? this.#resume(chunk, at) : this.#next(chunk, at);
      }
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  /** Passes on no further packets, not even those in the chunk that is being decoded. */
  stop(): void {
    this.#stopped = true;
    this.#hold(Buffer.alloc(0), 0);
  }

  /** Decodes the packet or line that begins at `at`, or holds its beginning. Returns the offset of the next one. */
  #next(chunk: Buffer, at: number): number {
    if (chunk[at] !== 0 && this.#options.onLine !== undefined) return this.#line(chunk, at);
    if (chunk.length - at < HEADER_SIZE) return this.#hold(chunk, at);
    const end = at + this.#sizeToRead(chunk, at);
    if (end > chunk.length) return this.#hold(chunk, at);
    this.#packet(chunk, at, end);
    return end;
  }

  /** Appends to the held packet or line until it is complete. Returns the offset of the rest of the chunk. */
  #resume(chunk: Buffer, at: number): number {
    if (this.#held[0] !== 0 && this.#options.onLine !== undefined) {
      const newline = chunk.indexOf(NEWLINE, at);
      const taken = this.#append(chunk, at, newline < 0 ? chunk.length : newline + 1, MAX_LINE_SIZE + 1);
      if (newline >= 0 || this.#heldLength > MAX_LINE_SIZE) this.#line(this.#release(), 0);
      return taken;
    }
    if (this.#heldLength < HEADER_SIZE) {
      const taken = this.#append(chunk, at, at + HEADER_SIZE - this.#heldLength, HEADER_SIZE);
      if (this.#heldLength === HEADER_SIZE && this.#sizeToRead(this.#held, 0) === HEADER_SIZE) {
        this.#packet(this.#release(), 0, HEADER_SIZE);
      }
      return taken;
    }
    const size = this.#sizeToRead(this.#held, 0);
    const taken = this.#append(chunk, at, at + size - this.#heldLength, size);
    if (this.#heldLength === size) this.#packet(this.#release(), 0, size);
    return taken;
  }

  #skip(chunk: Buffer, at: number): number {
    const skipped = Math.min(this.#skipped, chunk.length - at);
    this.#skipped -= skipped;
    return at + skipped;
  }

  /** Holds the end of a chunk as a view: the next chunk may complete the packet. Returns the end of the chunk. */
  #hold(chunk: Buffer, at: number): number {
    this.#held = chunk.subarray(at);
    this.#heldLength = this.#held.length;
    return chunk.length;
  }

  /** Copies to the held bytes; the buffer grows with the input. Returns the offset after the copied bytes. */
  #append(chunk: Buffer, at: number, end: number, size: number): number {
    const stop = Math.min(end, chunk.length);
    const length = this.#heldLength + stop - at;
    if (length > this.#held.length) {
      const larger = Buffer.allocUnsafeSlow(allocation(length, size));
      this.#held.copy(larger, 0, 0, this.#heldLength);
      this.#held = larger;
    }
    chunk.copy(this.#held, this.#heldLength, at, stop);
    this.#heldLength = length;
    return stop;
  }

  #release(): Buffer {
    const whole = this.#held.subarray(0, this.#heldLength);
    this.#heldLength = 0;
    return whole;
  }

  /** Reads a header. Returns the number of bytes to decode, which excludes most of a packet over the limit. */
  #sizeToRead(bytes: Buffer, at: number): number {
    const opening = bytes.readUInt32BE(at);
    if (opening !== RES && opening !== REQ) {
      const magic = bytes.toString('latin1', at, at + 4);
      throw new ProtocolError(
        'bad-magic',
        `a packet begins with ${JSON.stringify(magic)}; the peer is out of sync or does not speak Gearman`,
      );
    }
    const number = bytes.readUInt32BE(at + 4);
    if (PACKET_TYPES[number] === undefined) {
      throw new ProtocolError('unknown-packet', `packet type ${number} is not in the protocol`);
    }
    const size = packetSize(bytes, at);
    if (size <= this.#maxPacketSize) return size;
    if (PACKET_TYPES[number].hasPayload && this.#options.onOversized) return Math.min(size, OVERSIZED_HEAD);
    throw new ProtocolError(
      'packet-too-large',
      `a packet of ${size} bytes exceeds the limit of ${this.#maxPacketSize}; raise maxPacketSize`,
    );
  }

  #packet(bytes: Buffer, at: number, end: number): void {
    const type = PACKET_TYPES[bytes.readUInt32BE(at + 4)] as PacketType;
    const magic: Magic = bytes.readUInt32BE(at) === RES ? 'RES' : 'REQ';
    const packet = new Packet(type, magic, bytes, argumentStarts(type, bytes, at + HEADER_SIZE, end));
    const size = packetSize(bytes, at);
    if (size <= this.#maxPacketSize) {
      this.#options.onPacket(packet);
    } else {
      this.#skipped = size - (end - at);
      this.#options.onOversized?.(packet, size);
    }
  }

  #line(bytes: Buffer, at: number): number {
    const newline = bytes.indexOf(NEWLINE, at);
    const length = (newline < 0 ? bytes.length : newline) - at;
    if (length >= MAX_LINE_SIZE) {
      throw new ProtocolError(
        'packet-too-large',
        `a line of text exceeds the limit of ${MAX_LINE_SIZE} bytes`,
      );
    }
    if (newline < 0) return this.#hold(bytes, at);
    this.#options.onLine?.(
      bytes.subarray(at, bytes[newline - 1] === 0x0d && newline > at ? newline - 1 : newline),
    );
    return newline + 1;
  }
}

function packetSize(bytes: Buffer, at: number): number {
  return HEADER_SIZE + bytes.readUInt32BE(at + 8);
}

/** Size of the buffer for a packet of `size` bytes of which `arrived` have arrived. */
function allocation(arrived: number, size: number): number {
  return Math.max(arrived, Math.min(size, Math.max(FIRST_ALLOCATION, GROWTH * arrived)));
}

/** Offsets of the arguments, then the offset that a further argument would have. */
function argumentStarts(type: PacketType, bytes: Buffer, start: number, end: number): readonly number[] {
  const count = type.arguments.length;
  const starts = [start];
  let at = start;
  while (starts.length < count) {
    while (at < end && bytes[at] !== 0) at += 1;
    if (at === end) {
      if (type.mayLackPayload) return [start, end + 1, end + 2];
      throw new ProtocolError(
        'argument-missing',
        `${type.name} came with ${starts.length} of its ${count} arguments (${type.arguments.join(', ')})`,
      );
    }
    at += 1;
    starts.push(at);
  }
  // Some servers terminate a handle or an error text with a NUL. Only a payload may contain one.
  const closed = !type.hasPayload && end > at && bytes[end - 1] === 0;
  starts.push(closed ? end : end + 1);
  return starts;
}
