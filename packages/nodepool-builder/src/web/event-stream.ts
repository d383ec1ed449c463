import type { FastifyReply } from 'fastify';
import { printable } from '../terms/printable.ts';

/** Comment that keeps a silent stream open. */
const COMMENT = ':\n\n';

/** Event that keeps a silent stream open, and shows a script that the connection is not lost. */
export const ALIVE = 'event: alive\ndata: {}\n\n';

/** Pause between two of them, in milliseconds. */
const KEEP_ALIVE = 15_000;

/**
 * Maximum number of bytes that wait for a slow browser. Beyond it, the browser is disconnected, and reconnects where it
 * was.
 */
const MAX_BACKLOG = 4 * 1024 * 1024;

export function formatEvent(event: string, data: unknown, id: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${printable(JSON.stringify(data))}\n\n`;
}

/** Server-sent events to one browser. */
export class EventStream {
  readonly #raw: FastifyReply['raw'];
  readonly #closed = new AbortController();

  /**
   * Takes over the connection of a request.
   *
   * @param keepAlive sent every 15 s
   */
  constructor(reply: FastifyReply, keepAlive = COMMENT) {
    reply.hijack();
    this.#raw = reply.raw;
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) this.#raw.setHeader(name, value);
    }
    this.#raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
    });
    this.#raw.write('retry: 2000\n\n');
    const timer = setInterval(() => this.#raw.write(keepAlive), KEEP_ALIVE);
    this.#raw.on('error', () => {}); // `close` follows
    this.#raw.once('close', () => {
      clearInterval(timer);
      this.#closed.abort(new Error('the browser has disconnected'));
    });
  }

  /** Aborts when the browser has disconnected. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  send(event: string, data: unknown, id: string): void {
    this.sendBytes(formatEvent(event, data, id));
  }

  /** Sends events that {@link formatEvent} has made. */
  sendBytes(events: string | Uint8Array): void {
    if (this.closed.aborted) return;
    this.#raw.write(events);
    if (this.#raw.writableLength > MAX_BACKLOG) this.#raw.destroy();
  }

  /** Waits until the browser has read what was sent, or has disconnected. */
  async drained(): Promise<void> {
    if (this.closed.aborted || !this.#raw.writableNeedDrain) return;
    await new Promise<void>((resolve) => {
      this.#raw.once('drain', resolve).once('close', resolve);
    });
  }

  end(): void {
    this.#raw.end();
  }
}
