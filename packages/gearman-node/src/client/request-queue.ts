import type { Packet } from '../codec/packet.ts';
import { ReplyTimer } from '../connection/reply-timer.ts';
import { ConnectionError, type GearmanError, type ServerError } from '../errors.ts';
import type { PacketName } from '../packets.ts';

/** A request that a server is to answer with a packet of one type, or with ERROR. */
export interface PendingRequest {
  readonly expects: PacketName;
  readonly onReply: (packet: Packet) => void;
  readonly onFailure: (error: GearmanError) => void;
}

/**
 * Requests on one connection. A server answers in order and says in no answer which request it means; some requests
 * a server ignores. So an answer belongs to the oldest request that expects its type, and those before it get none.
 */
export class RequestQueue {
  readonly #requests = new Set<PendingRequest>();
  readonly #timer: ReplyTimer;

  /** @param onSilence called when requests wait and none was answered for `timeout` milliseconds */
  constructor(timeout: number, onSilence: () => void) {
    this.#timer = new ReplyTimer(timeout, onSilence);
  }

  push(request: PendingRequest): void {
    this.#requests.add(request);
    this.#timer.sent();
  }

  /** Takes a reply. A reply without a request is ignored. Returns whether it answered a request. */
  answer(packet: Packet): boolean {
    const overtaken: PendingRequest[] = [];
    for (const request of this.#requests) {
      if (request.expects !== packet.name) {
        overtaken.push(request);
        continue;
      }
      for (const earlier of overtaken) this.#fail(earlier, ignored(earlier));
      this.#remove(request);
      request.onReply(packet);
      return true;
    }
    return false;
  }

  /** Takes an ERROR packet, the reply to the oldest request. Returns whether it answered a request. */
  refuse(error: ServerError): boolean {
    for (const request of this.#requests) {
      this.#fail(request, error);
      return true;
    }
    return false;
  }

  /** Restarts the timeout: the silence was not the server's. */
  restartTimer(): void {
    this.#timer.answered(0);
  }

  /** The connection is over. */
  end(error: GearmanError): void {
    for (const request of this.#requests) this.#fail(request, error);
    this.#timer.stop();
  }

  #fail(request: PendingRequest, error: GearmanError): void {
    this.#remove(request);
    request.onFailure(error);
  }

  #remove(request: PendingRequest): void {
    this.#requests.delete(request);
    this.#timer.answered();
  }
}

function ignored(request: PendingRequest): ConnectionError {
  return new ConnectionError(
    'server-silent',
    `the job server sent no ${request.expects}, but answered a later request`,
  );
}
