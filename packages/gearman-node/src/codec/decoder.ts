import { ProtocolError } from '../errors.ts';
import { PACKET_TYPES, type PacketType } from '../packets.ts';
import { HEADER_SIZE, type Magic, Packet } from './packet.ts';

/** The largest packet that is taken unless an option says otherwise: 64 MiB. */
export const DEFAULT_MAX_PACKET_SIZE: number = 64 * 1024 * 1024;

/** What a peer may claim as a length without sending it costs at most this many bytes, … */
const FIRST_ALLOCATION = 64 * 1024;

/** … or so many times what it has sent. */
const GROWTH = 32;

/** Bytes read of a packet over the limit: all arguments but the payload, at most 512 bytes each. */
const OVERSIZED_HEAD = 2048;

const MAX_LINE_SIZE = 8192;
const NEWLINE = 0x0a;

/** `\0REQ` and `\0RES` as big-endian numbers. */
const REQ = 0x00_52_45_51;
const RES = 0x00_52_45_53;

/** How a {@link PacketDecoder} is set up. */
export interface DecoderOptions {
  readonly onPacket: (packet: Packet) => void;
  /**
   * Takes a line of the admin text protocol, without its line ending. Only a server has it: there, what does not
   * begin with NUL is text.
   */
  readonly onLine?: (line: Buffer) => void;
  /** Bytes of the largest packet that is taken, header included. Default 64 MiB. */
  readonly maxPacketSize?: number | undefined;
  /**
   * Takes a packet whose payload makes it larger than the limit, cut short after 2 KiB, and the size that it has; the
   * rest is skipped. Without it such a packet is an error, as is one over the limit that has no payload.
   */
  readonly onOversized?: ((packet: Packet, size: number) => void) | undefined;
}

/** Cuts a stream of bytes into packets. It has no socket: chunks of any size go in, packets come out. */
export class PacketDecoder {
  readonly #options: DecoderOptions;
  readonly #maxPacketSize: number;
  /** The beginning of a packet or of a line whose rest has not arrived. */
  #held: Buffer = Buffer.alloc(0);
  #heldLength = 0;
  /** Bytes still to skip of a packet over the limit. */
  #skipped = 0;
  #stopped = false;

  constructor(options: DecoderOptions) {
    this.#options = options;
    this.#maxPacketSize = options.maxPacketSize ?? DEFAULT_MAX_PACKET_SIZE;
  }

  /**
   * Takes the next bytes of the stream and hands out each packet that they complete, in order. The chunk must not
   * be written to afterwards: packets are views of it.
   *
   * @throws ProtocolError for a bad magic, an unknown type, too great a length or too few arguments. The stream
   * cannot be resynchronised: later bytes are ignored. Results of workers may lack the NUL before
   * an empty payload, as those of Perl's do.
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

  /** Hands out nothing more, not even what is left of the chunk that is being decoded. */
  stop(): void {
    this.#stopped = true;
    this.#hold(Buffer.alloc(0), 0);
  }

  /** Takes one packet or line that begins at `at`, or holds what there is of it. Returns where the next begins. */
  #next(chunk: Buffer, at: number): number {
    if (chunk[at] !== 0 && this.#options.onLine !== undefined) return this.#line(chunk, at);
    if (chunk.length - at < HEADER_SIZE) return this.#hold(chunk, at);
    const end = at + this.#sizeToRead(chunk, at);
    if (end > chunk.length) return this.#hold(chunk, at);
    this.#packet(chunk, at, end);
    return end;
  }

  /** Adds to what is held until it is a whole packet or line. Returns where the rest of the chunk begins. */
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

  /** Starts to hold, without a copy: the next chunk tells more of how much memory is due. Returns the chunk's end. */
  #hold(chunk: Buffer, at: number): number {
    this.#held = chunk.subarray(at);
    this.#heldLength = this.#held.length;
    return chunk.length;
  }

  /** Holds more, in a buffer that grows with what really arrives. Returns how far the chunk was taken. */
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

  /** Reads a header. Returns how many bytes to hand out, header included: the whole packet, or the head of a large one. */
  #sizeToRead(bytes: Buffer, at: number): number {
    const opening = bytes.readUInt32BE(at);
    if (opening !== RES && opening !== REQ) {
      const magic = bytes.toString('latin1', at, at + 4);
      throw new ProtocolError(
        'bad-magic',
        `a packet begins with ${JSON.stringify(magic)}; the peer is out of step or speaks no Gearman`,
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
      `a packet of ${size} bytes is over the limit of ${this.#maxPacketSize}; maxPacketSize raises it`,
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
        `a line of text is over the limit of ${MAX_LINE_SIZE} bytes`,
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

/** How much to allocate for a packet of `size` bytes of which `arrived` are there. */
function allocation(arrived: number, size: number): number {
  return Math.max(arrived, Math.min(size, Math.max(FIRST_ALLOCATION, GROWTH * arrived)));
}

/** Where each argument starts, and where one more would. */
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
  // Some servers end a handle or an error text with a NUL of its own. Only a payload may really end with one.
  const closed = !type.hasPayload && end > at && bytes[end - 1] === 0;
  starts.push(closed ? end : end + 1);
  return starts;
}
