/** What a server is told of functions, a packet each. */
export interface Registration {
  readonly packet: 'CAN_DO' | 'CANT_DO' | 'RESET_ABILITIES';
  /** Empty for RESET_ABILITIES. */
  readonly function: string;
}

/** So many packets are made in one turn of the event loop: thousands at once would hold up everything else. */
const IN_ONE_TURN = 500;

/** Registrations on their way to a server, in order. The first ones are sent at once. */
export class RegistrationQueue {
  readonly #send: (registration: Registration) => void;
  readonly #onEmpty: () => void;
  #waiting: Registration[] = [];
  #immediate: NodeJS.Immediate | undefined;
  #emptied: (() => void)[] = [];

  /** @param onEmpty called in a later turn, when what could not be sent at once is sent */
  constructor(send: (registration: Registration) => void, onEmpty: () => void) {
    this.#send = send;
    this.#onEmpty = onEmpty;
  }

  get isEmpty(): boolean {
    return this.#immediate === undefined;
  }

  add(registrations: readonly Registration[]): void {
    for (const registration of registrations) this.#waiting.push(registration);
    if (this.isEmpty) this.#sendSome();
  }

  /** Resolves when all is sent, or at {@link end}. */
  async empty(): Promise<void> {
    if (this.isEmpty) return;
    await new Promise<void>((resolve) => this.#emptied.push(resolve));
  }

  /** Sends nothing more. */
  end(): void {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    this.#waiting = [];
    for (const resolve of this.#emptied.splice(0)) resolve();
  }

  #sendSome(): void {
    for (const registration of this.#waiting.splice(0, IN_ONE_TURN)) this.#send(registration);
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
