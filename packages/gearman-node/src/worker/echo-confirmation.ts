import { ReplyTimer } from '../connection/reply-timer.ts';
import type { ServerKnowledge } from './server-knowledge.ts';

/** Timeout of a server's first ECHO_RES in milliseconds, after which it counts as mute. */
const FIRST_LIMIT = 1000;

/** Callbacks of an {@link EchoConfirmation}. */
export interface EchoPort {
  readonly send: (token: string) => void;
  /** Called when a server that replied before no longer does. */
  readonly onSilence: () => void;
}

/** Confirms with ECHO_REQ and ECHO_RES that a server has processed all packets sent before. */
export class EchoConfirmation {
  readonly #server: ServerKnowledge;
  readonly #port: EchoPort;
  readonly #firstReply: ReplyTimer;
  readonly #replies: ReplyTimer;
  readonly #waiting = new Map<number, () => void>();
  #sent = 0;

  /** @param timeout timeout of a reply, in milliseconds */
  constructor(server: ServerKnowledge, timeout: number, port: EchoPort) {
    this.#server = server;
    this.#port = port;
    this.#firstReply = new ReplyTimer(Math.min(FIRST_LIMIT, timeout), () => this.#onMute());
    this.#replies = new ReplyTimer(timeout, port.onSilence);
  }

  /** Resolves when the server has replied, at once if it is known to be mute, or at {@link end}. Never rejects. */
  async request(): Promise<void> {
    if (this.#server.repliesToEcho === false) return;
    this.#sent += 1;
    const token = this.#sent;
    this.#port.send(String(token));
    (this.#server.repliesToEcho ? this.#replies : this.#firstReply).sent();
    await new Promise<void>((resolve) => {
      this.#waiting.set(token, resolve);
    });
  }

  /** Handles ECHO_RES. It also completes the earlier requests, because a server replies in order. */
  replied(token: string): void {
    this.#server.repliesToEcho = true;
    this.#firstReply.stop();
    this.#replies.replied();
    for (const [sent, resolve] of this.#waiting) {
      if (sent > Number(token)) break;
      this.#waiting.delete(sent);
      resolve();
    }
  }

  /** Resolves all requests when the connection has closed. */
  end(): void {
    this.#firstReply.stop();
    this.#replies.stop();
    this.#releaseAll();
  }

  #onMute(): void {
    this.#server.repliesToEcho = false;
    this.#firstReply.stop();
    this.#releaseAll();
  }

  #releaseAll(): void {
    for (const resolve of this.#waiting.values()) resolve();
    this.#waiting.clear();
  }
}
