import { types } from 'node:util';
import { GearmanError } from '../errors.ts';
import { type ArgumentValue, type ArgumentValues, PACKETS, type PacketName } from '../packets.ts';
import { HEADER_SIZE, MAGIC_NUMBERS, type Magic } from './packet.ts';

/** Small packets share a buffer of this size. */
const SLAB_SIZE = 32 * 1024;

/** Minimum size of a payload that is passed on without a copy. Copying a smaller one is cheaper. */
const PASS_ON_SIZE = 4 * 1024;

/** Maximum value of the length field. */
const MAX_BODY_SIZE = 0xffff_ffff;

/** Encodes packets into as few buffers as possible, so that one system call can write them. It owns no socket. */
export class PacketEncoder {
  readonly #magic: number;
  #slab: Buffer = Buffer.alloc(0);
  /** The range of the slab that is filled and not yet in `#parts`. */
  #start = 0;
  #end = 0;
  #parts: Uint8Array[] = [];
  #partsLength = 0;

  /** @param magic `REQ` for a client or a worker, `RES` for a server */
  constructor(magic: Magic) {
    this.#magic = MAGIC_NUMBERS[magic];
  }

  /** Number of bytes added since the last {@link take}. */
  get length(): number {
    return this.#partsLength + this.#end - this.#start;
  }

  /**
   * Adds a packet. A large payload is not copied, and must not be modified before it has been written.
   *
   * @throws GearmanError `invalid-argument` with nothing added: for an argument before the last that contains a NUL,
   * which would shift the others, for an argument that is not text, a number or bytes, or for arguments that are too
   * long
   */
  add<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void {
    const values = args as readonly ArgumentValue[];
    const payload = passedOn(values.at(-1));
    const copied = payload === undefined ? values.length : values.length - 1;
    let size = HEADER_SIZE + values.length;
    for (let index = 0; index < copied; index += 1) {
      size += maxEncodedLength(name, index, values[index] as ArgumentValue, index === values.length - 1);
    }
    if (size + (payload?.length ?? 0) > MAX_BODY_SIZE) {
      throw new GearmanError('invalid-argument', `the arguments of ${name} exceed 4 GiB; send them in parts`);
    }
    this.#reserve(size);
    const header = this.#end;
    this.#end += HEADER_SIZE;
    for (let index = 0; index < values.length; index += 1) {
      if (index > 0) this.#slab[this.#end++] = 0;
      if (index < copied) this.#write(values[index] as ArgumentValue);
    }
    this.#writeHeader(header, name, this.#end - header - HEADER_SIZE + (payload?.length ?? 0));
    if (payload !== undefined) this.addBytes(payload);
  }

  /**
   * Adds a packet whose arguments are already joined. It checks nothing and takes a fraction of the time of
   * {@link add}.
   *
   * @param text all arguments but the payload, with the NULs after them and one character per byte
   */
  addJoined(name: PacketName, text: string, payload?: Uint8Array): void {
    const size = payload?.length ?? 0;
    const copied = size < PASS_ON_SIZE ? size : 0;
    this.#reserve(HEADER_SIZE + text.length + copied);
    this.#writeHeader(this.#end, name, text.length + size);
    this.#end += HEADER_SIZE;
    this.#end += this.#slab.write(text, this.#end, 'latin1');
    if (payload === undefined || size === 0) return;
    if (copied === 0) {
      this.addBytes(payload);
    } else {
      this.#slab.set(payload, this.#end);
      this.#end += size;
    }
  }

  /** Adds raw bytes: a payload, or a reply of the admin text protocol. */
  addBytes(bytes: Uint8Array): void {
    this.#cut();
    this.#parts.push(bytes);
    this.#partsLength += bytes.length;
  }

  /** Returns the bytes that were added since the last call, in order. */
  take(): Uint8Array[] {
    this.#cut();
    const parts = this.#parts;
    this.#parts = [];
    this.#partsLength = 0;
    return parts;
  }

  /** Reuses the memory of written packets. All bytes that {@link take} returned must have been written. */
  reuse(): void {
    this.#start = 0;
    this.#end = 0;
  }

  #writeHeader(at: number, name: PacketName, size: number): void {
    this.#slab.writeUInt32BE(this.#magic, at);
    this.#slab.writeUInt32BE(PACKETS[name].number, at + 4);
    this.#slab.writeUInt32BE(size, at + 8);
  }

  #write(value: ArgumentValue): void {
    if (typeof value === 'object') {
      this.#slab.set(value, this.#end);
      this.#end += value.length;
    } else {
      this.#end += this.#slab.write(typeof value === 'string' ? value : String(value), this.#end);
    }
  }

  #reserve(size: number): void {
    if (size <= this.#slab.length - this.#end) return;
    this.#cut();
    this.#slab = Buffer.allocUnsafeSlow(Math.max(size, SLAB_SIZE));
    this.#start = 0;
    this.#end = 0;
  }

  #cut(): void {
    if (this.#end === this.#start) return;
    this.#parts.push(this.#slab.subarray(this.#start, this.#end));
    this.#partsLength += this.#end - this.#start;
    this.#start = this.#end;
  }
}

/** Returns the last argument if it is too long to copy. */
function passedOn(value: ArgumentValue | undefined): Uint8Array | undefined {
  if (typeof value === 'string') return value.length < PASS_ON_SIZE ? undefined : Buffer.from(value);
  return types.isUint8Array(value) && value.length >= PASS_ON_SIZE ? value : undefined;
}

/**
 * Checks an argument. Returns an upper bound of its size: UTF-8 takes at most three bytes for each unit of a string.
 */
function maxEncodedLength(name: PacketName, index: number, value: ArgumentValue, isLast: boolean): number {
  if (typeof value === 'number') return String(value).length;
  if (typeof value !== 'string' && !types.isUint8Array(value)) {
    const kind = `of type ${typeof value}; give text, a number or bytes`;
    throw new GearmanError('invalid-argument', `the ${PACKETS[name].arguments[index]} of ${name} is ${kind}`);
  }
  const isText = typeof value === 'string';
  if (!isLast && (isText ? value.includes('\0') : value.includes(0))) {
    const argument = PACKETS[name].arguments[index];
    throw new GearmanError(
      'invalid-argument',
      `the ${argument} of ${name} contains a NUL; only a payload may`,
    );
  }
  return isText ? 3 * value.length : value.length;
}
