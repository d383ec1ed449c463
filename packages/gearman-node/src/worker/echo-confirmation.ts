import { ReplyTimer } from '../connection/reply-timer.ts';

/** How long a server that has never answered an ECHO_REQ may take, in milliseconds, before it counts as mute. */
const FIRST_LIMIT = 1000;

/** What is known of a server, over all connections to it: python's job server never answers ECHO_REQ. */
export interface EchoKnowledge {
  answers: boolean | undefined;
}

/** What {@link EchoConfirmation} uses. */
export interface EchoPort {
  readonly send: (token: string) => void;
  /** A server that used to answer does so no more. */
  readonly onSilence: () => void;
}

/** Confirms, by ECHO_REQ and ECHO_RES, that a server has processed all that was sent before. */
export class EchoConfirmation {
  readonly #knowledge: EchoKnowledge;
  readonly #port: EchoPort;
  readonly #firstAnswer: ReplyTimer;
  readonly #answers: ReplyTimer;
  readonly #waiting = new Map<number, () => void>();
  #sent = 0;

  constructor(knowledge: EchoKnowledge, timeout: number, port: EchoPort) {
    this.#knowledge = knowledge;
    this.#port = port;
    this.#firstAnswer = new ReplyTimer(Math.min(FIRST_LIMIT, timeout), () => this.#isMute());
    this.#answers = new ReplyTimer(timeout, port.onSilence);
  }

  /** Resolves when the server has answered, when it is known for not doing so, or at {@link end}. Never rejects. */
  async request(): Promise<void> {
    if (this.#knowledge.answers === false) return;
    this.#sent += 1;
    const token = this.#sent;
    this.#port.send(String(token));
    (this.#knowledge.answers ? this.#answers : this.#firstAnswer).sent();
    await new Promise<void>((resolve) => {
      this.#waiting.set(token, resolve);
    });
  }

  /** ECHO_RES came. It answers the requests before it, too: a server answers in order. */
  answered(token: string): void {
    this.#knowledge.answers = true;
    this.#firstAnswer.stop();
    this.#answers.answered();
    for (const [sent, resolve] of this.#waiting) {
      if (sent > Number(token)) break;
      this.#waiting.delete(sent);
      resolve();
    }
  }

  /** The connection is over: nobody need wait any longer. */
  end(): void {
    this.#firstAnswer.stop();
    this.#answers.stop();
    this.#releaseAll();
  }

  #isMute(): void {
    this.#knowledge.answers = false;
    this.#firstAnswer.stop();
    this.#releaseAll();
  }

  #releaseAll(): void {
    for (const resolve of this.#waiting.values()) resolve();
    this.#waiting.clear();
  }
}
