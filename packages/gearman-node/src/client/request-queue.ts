import type { Packet } from '../codec/packet.ts';
import { ReplyTimer } from '../connection/reply-timer.ts';
import { ConnectionError, type GearmanError, type ServerError } from '../errors.ts';
import type { PacketName } from '../packets.ts';

/** A request to which the server replies with a packet of one type or with ERROR. */
export interface PendingRequest {
  readonly expects: PacketName;
  readonly onReply: (packet: Packet) => void;
  readonly onFailure: (error: GearmanError) => void;
}

/**
 * The requests of one connection that have no reply yet. A server replies in order, but its replies do not identify the
 * request, and some servers ignore some requests. So a reply belongs to the oldest request that expects its type, and
 * the requests before it have failed.
 */
export class RequestQueue {
  readonly #requests = new Set<PendingRequest>();
  readonly #timer: ReplyTimer;

  /** @param onSilence called when requests are outstanding, and none has had a reply for `timeout` milliseconds */
  constructor(timeout: number, onSilence: () => void) {
    this.#timer = new ReplyTimer(timeout, onSilence);
  }

  push(request: PendingRequest): void {
    this.#requests.add(request);
    this.#timer.sent();
  }

  /** Handles a reply; ignores a reply without a request. Returns whether there was one. */
  settle(packet: Packet): boolean {
    for (const request of this.#requests) {
      if (request.expects !== packet.name) continue;
      this.#failBefore(request);
      this.#remove(request);
      request.onReply(packet);
      return true;
    }
    return false;
  }

  /** Handles an ERROR packet, the reply to the oldest request. Returns whether there was a request. */
  fail(error: ServerError): boolean {
    for (const request of this.#requests) {
      this.#reject(request, error);
      return true;
    }
    return false;
  }

  /** Restarts the timeout after a silence that the server did not cause. */
  restartTimer(): void {
    this.#timer.replied(0);
  }

  /** Fails all requests when the connection has closed. */
  end(error: GearmanError): void {
    for (const request of this.#requests) this.#reject(request, error);
    this.#timer.stop();
  }

  #failBefore(settled: PendingRequest): void {
    for (const request of this.#requests) {
      if (request === settled) return;
      this.#reject(request, ignored(request));
    }
  }

  #reject(request: PendingRequest, error: GearmanError): void {
    this.#remove(request);
    request.onFailure(error);
  }

  #remove(request: PendingRequest): void {
    this.#requests.delete(request);
    this.#timer.replied();
  }
}

function ignored(request: PendingRequest): ConnectionError {
  return new ConnectionError(
    'server-silent',
    `the job server sent no ${request.expects}, but replied to a later request`,
  );
}
