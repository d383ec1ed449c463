/** The packets that register and deregister functions. */
export type RegistrationPacket = 'CAN_DO' | 'CANT_DO' | 'RESET_ABILITIES';

/** Maximum number of packets sent in one turn of the event loop: thousands at once would block it. */
const IN_ONE_TURN = 100;

/** Registrations to be sent to a server, in order. A few are sent at once, many from the next turn on. */
export class RegistrationQueue {
  readonly #send: (packet: RegistrationPacket, name: string) => void;
  readonly #onEmpty: () => void;
  #waiting: { readonly packet: RegistrationPacket; readonly names: string[]; sent: number }[] = [];
  #immediate: NodeJS.Immediate | undefined;
  #emptied: (() => void)[] = [];

  /** @param onEmpty called when packets that could not be sent at once have been sent, in a later turn */
  constructor(send: (packet: RegistrationPacket, name: string) => void, onEmpty: () => void) {
    this.#send = send;
    this.#onEmpty = onEmpty;
  }

  get isEmpty(): boolean {
    return this.#immediate === undefined;
  }

  /** @param names the functions, a packet each; for RESET_ABILITIES one empty name */
  add(packet: RegistrationPacket, names: readonly string[]): void {
    if (names.length === 0) return;
    const isFirst = this.isEmpty;
    const last = this.#waiting.at(-1);
    // Names that are added one by one, 100,000 times, must not be as many entries: each would move all others.
    if (last?.packet === packet) for (const name of names) last.names.push(name);
    else this.#waiting.push({ packet, names: [...names], sent: 0 });
    if (!isFirst) return;
    if (names.length > IN_ONE_TURN) this.#immediate = setImmediate(this.#onTurn);
    else this.#sendSome();
  }

  /** Resolves when all packets have been sent, or at {@link end}. */
  async empty(): Promise<void> {
    if (this.isEmpty) return;
    await new Promise<void>((resolve) => this.#emptied.push(resolve));
  }

  /** Discards all unsent packets. */
  end(): void {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    this.#waiting = [];
    for (const resolve of this.#emptied.splice(0)) resolve();
  }

  #sendSome(): void {
    let room = IN_ONE_TURN;
    for (let next = this.#waiting[0]; next !== undefined && room > 0; next = this.#waiting[0]) {
      const end = Math.min(next.sent + room, next.names.length);
      room -= end - next.sent;
      while (next.sent < end) this.#send(next.packet, next.names[next.sent++] as string);
      if (end === next.names.length) this.#waiting.shift();
    }
    if (this.#waiting.length > 0) this.#immediate = setImmediate(this.#onTurn);
  }

  readonly #onTurn = (): void => {
    this.#immediate = undefined;
    this.#sendSome();
    if (!this.isEmpty) return;
    for (const resolve of this.#emptied.splice(0)) resolve();
    this.#onEmpty();
  };
}
