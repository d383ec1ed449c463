import { ProtocolError } from '../errors.ts';
import type { ArgumentName, PacketName, PacketType } from '../packets.ts';

/** Size of a packet's header in bytes: magic, type and length. */
export const HEADER_SIZE = 12;

/** Maximum number of characters of a malformed argument in an error message. */
const MAX_SHOWN = 40;

/** The first four bytes of a packet, without their NUL: `RES` for a server's packets, `REQ` for all others. */
export type Magic = 'REQ' | 'RES';

/** The magics as big-endian numbers. */
export const MAGIC_NUMBERS: Readonly<Record<Magic, number>> = { REQ: 0x00_52_45_51, RES: 0x00_52_45_53 };

/**
 * A received packet. Its arguments are views of the received bytes, created on demand. A payload keeps its whole chunk
 * in memory: copy it (`Buffer.from`) to store it.
 */
export class Packet {
  readonly type: PacketType;
  readonly magic: Magic;
  readonly #bytes: Buffer;
  /** Offsets of the arguments, then the offset that a further one would have. One NUL separates two arguments. */
  readonly #starts: readonly number[];

  constructor(type: PacketType, magic: Magic, bytes: Buffer, starts: readonly number[]) {
    this.type = type;
    this.magic = magic;
    this.#bytes = bytes;
    this.#starts = starts;
  }

  get name(): PacketName {
    return this.type.name;
  }

  /** An argument as UTF-8 text. */
  text(argument: ArgumentName): string {
    return this.#slice(argument, 'utf8');
  }

  /** An argument as a string with one character per byte, for handles and map keys. It preserves any byte. */
  key(argument: ArgumentName): string {
    return this.#slice(argument, 'latin1');
  }

  /**
   * A decimal argument: digits only. An empty one is 0, because the Python and Perl servers send it for an unknown job.
   *
   * @throws ProtocolError `invalid-argument` for anything else, and for a number above 2^53 - 1
   */
  number(argument: ArgumentName): number {
    const text = this.key(argument);
    const number = Number(text);
    if (/^\d*$/.test(text) && Number.isSafeInteger(number)) return number;
    const shown = JSON.stringify(text.slice(0, MAX_SHOWN));
    throw new ProtocolError(
      'invalid-argument',
      `the ${argument} of ${this.name} is ${shown}; it must be a decimal number up to 2^53 - 1`,
    );
  }

  /** The bytes of an argument: a view, not a copy. */
  bytes(argument: ArgumentName): Buffer {
    const index = this.type.arguments.indexOf(argument);
    return this.#bytes.subarray(this.#starts[index], (this.#starts[index + 1] as number) - 1);
  }

  #slice(argument: ArgumentName, encoding: 'utf8' | 'latin1'): string {
    const index = this.type.arguments.indexOf(argument);
    return this.#bytes.toString(encoding, this.#starts[index], (this.#starts[index + 1] as number) - 1);
  }
}
