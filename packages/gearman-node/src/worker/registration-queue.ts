import { setImmediate as nextTurn } from 'node:timers/promises';

/** The packets that register and deregister functions. */
export type RegistrationPacket = 'CAN_DO' | 'CANT_DO' | 'RESET_ABILITIES';

/** Maximum number of packets sent in one turn of the event loop, which thousands would block. */
const IN_ONE_TURN = 100;

/**
 * Number of packets after which the server must confirm that it has processed them. gearmand serves no other client
 * while packets of one connection arrive, and needs half a minute for the functions of 100,000 images.
 */
export const BATCH = 1000;

/** Callbacks of a {@link RegistrationQueue}. */
export interface RegistrationPort {
  readonly send: (packet: RegistrationPacket, name: string) => void;
  /** Resolves when the server has processed all sent packets, or when the connection has closed. Never rejects. */
  readonly confirm: () => Promise<void>;
  /** Called when packets that could not be sent at once have been sent, in a later turn. */
  readonly onEmpty: () => void;
}

/** The registrations to send to a server, in order. A few are sent at once, many from the next turn on, in batches. */
export class RegistrationQueue {
  readonly #port: RegistrationPort;
  #waiting: { readonly packet: RegistrationPacket; readonly names: string[]; sent: number }[] = [];
  #unconfirmed = 0;
  #isSending = false;
  #emptied: (() => void)[] = [];

  constructor(port: RegistrationPort) {
    this.#port = port;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** @param names the functions, a packet each; one empty name for RESET_ABILITIES */
  add(packet: RegistrationPacket, names: readonly string[]): void {
    if (names.length === 0) return;
    const last = this.#waiting.at(-1);
    // 100,000 names that are added one by one must not become as many entries, because each removal would move all
    // others.
    if (last?.packet === packet) for (const name of names) last.names.push(name);
    else this.#waiting.push({ packet, names: [...names], sent: 0 });
    if (this.#isSending) return;
    if (names.length <= IN_ONE_TURN && this.#unconfirmed < BATCH) this.#sendSome();
    else void this.#sendInTurns(); // never rejects
  }

  /** Resolves when all packets have been sent, or at {@link end}. */
  async empty(): Promise<void> {
    if (this.isEmpty) return;
    await new Promise<void>((resolve) => this.#emptied.push(resolve));
  }

  /** Discards all unsent packets. */
  end(): void {
    this.#waiting = [];
    for (const resolve of this.#emptied.splice(0)) resolve();
  }

  async #sendInTurns(): Promise<void> {
    this.#isSending = true;
    while (!this.isEmpty) {
      if (this.#unconfirmed >= BATCH) {
        await this.#port.confirm();
        this.#unconfirmed = 0;
      }
      await nextTurn();
      this.#sendSome();
    }
    this.#isSending = false;
    for (const resolve of this.#emptied.splice(0)) resolve();
    this.#port.onEmpty();
  }

  #sendSome(): void {
    let budget = IN_ONE_TURN;
    for (let next = this.#waiting[0]; next !== undefined && budget > 0; next = this.#waiting[0]) {
      const end = Math.min(next.sent + budget, next.names.length);
      budget -= end - next.sent;
      while (next.sent < end) this.#port.send(next.packet, next.names[next.sent++] as string);
      if (end === next.names.length) this.#waiting.shift();
    }
    this.#unconfirmed += IN_ONE_TURN - budget;
  }
}
