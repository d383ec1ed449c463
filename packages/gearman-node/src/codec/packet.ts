import { ProtocolError } from '../errors.ts';
import type { ArgumentName, PacketName, PacketType } from '../packets.ts';

/** Magic, type and length: what every packet begins with. */
export const HEADER_SIZE = 12;

/** Characters of a malformed argument that an error message shows. */
const MAX_SHOWN = 40;

/** The four bytes that open a packet, without their NUL: a request (`REQ`), or what a server sends (`RES`). */
export type Magic = 'REQ' | 'RES';

/**
 * A packet that was received. Its arguments are views of the received bytes, made when they are asked for.
 * A payload that is kept for long keeps the chunk it came in: copy it (`Buffer.from`) if that matters.
 */
export class Packet {
  readonly type: PacketType;
  readonly magic: Magic;
  readonly #bytes: Buffer;
  /** Where each argument starts, then where the one after the last would: one NUL lies between two of them. */
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

  /** An argument as a string with one character per byte, which keeps any byte: for handles and as a key. */
  key(argument: ArgumentName): string {
    return this.#slice(argument, 'latin1');
  }

  /**
   * A decimal argument: digits alone. An empty one is 0, for so python's and Perl's servers answer for a job that they
   * do not know.
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

  /** An argument's bytes: a view, not a copy. */
  bytes(argument: ArgumentName): Buffer {
    const index = this.type.arguments.indexOf(argument);
    return this.#bytes.subarray(this.#starts[index], (this.#starts[index + 1] as number) - 1);
  }

  #slice(argument: ArgumentName, encoding: 'utf8' | 'latin1'): string {
    const index = this.type.arguments.indexOf(argument);
    return this.#bytes.toString(encoding, this.#starts[index], (this.#starts[index + 1] as number) - 1);
  }
}
