import type { Socket } from 'node:net';
import { ReplyTimer } from '../connection/reply-timer.ts';
import { ConnectionError, type GearmanError, ProtocolError, ServerError } from '../errors.ts';

const NEWLINE = 10;

/** Overhead of a line in bytes. */
const LINE_OVERHEAD = 16;

/** Options of an {@link AdminConnection}. */
export interface AdminConnectionOptions {
  readonly peer: string;
  /** Timeout of a command in milliseconds. */
  readonly timeout: number;
  /** Maximum size of a reply in bytes. */
  readonly maxReplySize: number;
  /** Called once, when the connection has closed. */
  readonly onClose: () => void;
}

/** A command that waits for its reply. */
interface PendingCommand {
  /** True if the reply is a list. */
  readonly isList: boolean;
  readonly onLine: (line: string) => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** Error that `onLine` threw. The rest of the reply is then skipped. */
  error?: unknown;
}

/** Sends commands over one connected socket and splits the input into replies, in order. */
export class AdminConnection {
  readonly #socket: Socket;
  readonly #peer: string;
  readonly #maxReplySize: number;
  readonly #timer: ReplyTimer;
  readonly #pending: PendingCommand[] = [];
  /** The incomplete line at the end of the input, in the first `#heldLength` bytes. */
  #held = Buffer.alloc(0);
  #heldLength = 0;
  /** Size of the current reply so far, in bytes. */
  #replySize = 0;
  #reason: GearmanError | undefined;

  constructor(socket: Socket, { peer, timeout, maxReplySize, onClose }: AdminConnectionOptions) {
    this.#socket = socket;
    this.#peer = peer;
    this.#maxReplySize = maxReplySize;
    this.#timer = new ReplyTimer(timeout, () => {
      this.#reason ??= new ConnectionError(
        'server-silent',
        `${peer} did not reply within ${timeout} ms; it hangs, or does not know the command`,
      );
      socket.destroy();
    });
    socket.on('data', (chunk: Buffer) => {
      this.#read(chunk);
      // Node.js reads up to 32 chunks before it serves other sockets. 2 MiB of a list would block the event loop.
      socket.pause();
      setImmediate(() => socket.resume());
    });
    socket.on('error', (cause) => {
      this.#reason ??= this.#lost(cause.message, cause);
    });
    socket.on('close', () => {
      onClose();
      this.#rejectAll();
    });
  }

  /**
   * Sends a command. Resolves at the end of the reply.
   *
   * @param isList true if the reply is a list, which ends with a dot; false for a single line
   * @param onLine called with each line of the reply, without the dot that ends a list; an error that it throws rejects
   * the command
   */
  run(line: string, isList: boolean, onLine: (line: string) => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#pending.push({ isList, onLine, resolve, reject });
    this.#timer.sent();
    this.#socket.write(line);
    return promise;
  }

  /** Closes the connection. Commands without a reply reject with the reason. */
  async close(reason: GearmanError): Promise<void> {
    this.#reason ??= reason;
    if (this.#socket.destroyed) return;
    const closed = new Promise((resolve) => this.#socket.once('close', resolve));
    this.#socket.destroy();
    await closed;
  }

  #read(chunk: Buffer): void {
    const searched = this.#heldLength;
    this.#hold(chunk);
    const text = this.#held.subarray(0, this.#heldLength);
    let start = 0;
    for (let end = text.indexOf(NEWLINE, searched); end >= 0; end = text.indexOf(NEWLINE, start)) {
      this.#line(text.toString('utf8', start, end).replace(/\r$/, ''));
      start = end + 1;
    }
    if (start > 0) {
      this.#held = Buffer.from(text.subarray(start));
      this.#heldLength = this.#held.length;
    }
    if (this.#replySize + this.#heldLength > this.#maxReplySize) this.#rejectOversized();
  }

  /** Appends to the held bytes. The buffer doubles, because a line may arrive byte by byte. */
  #hold(chunk: Buffer): void {
    const length = this.#heldLength + chunk.length;
    if (length > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#heldLength));
      this.#held.copy(larger, 0, 0, this.#heldLength);
      this.#held = larger;
    }
    chunk.copy(this.#held, this.#heldLength);
    this.#heldLength = length;
  }

  #rejectOversized(): void {
    this.#reason ??= new ProtocolError(
      'reply-too-large',
      `a reply of ${this.#peer} exceeds the limit of ${this.#maxReplySize} bytes; raise maxReplySize`,
    );
    this.#socket.destroy();
  }

  #line(line: string): void {
    const [command] = this.#pending;
    if (!command) return;
    const isDot = command.isList && line === '.';
    const error = this.#replySize === 0 ? errorIn(line) : undefined;
    if (error) {
      this.#replied();
      command.reject(error);
      return;
    }
    if (!isDot) passOn(command, line);
    this.#replySize += line.length + LINE_OVERHEAD;
    if (command.isList && !isDot) return;
    this.#replied();
    if (command.error === undefined) command.resolve();
    else command.reject(command.error);
  }

  #replied(): void {
    this.#replySize = 0;
    this.#pending.shift();
    this.#timer.replied();
  }

  #rejectAll(): void {
    this.#timer.stop();
    const error = this.#reason ?? this.#lost('closed by the server');
    for (const command of this.#pending.splice(0)) command.reject(error);
  }

  #lost(reason: string, cause?: unknown): ConnectionError {
    return new ConnectionError('connection-lost', `the connection to ${this.#peer} was lost: ${reason}`, {
      cause,
    });
  }
}

function passOn(command: PendingCommand, line: string): void {
  if (command.error !== undefined) return;
  try {
    command.onLine(line);
  } catch (error) {
    command.error = error;
  }
}

/**
 * Returns the error in a line. A line with a tab is not an error, but belongs to a function whose name looks like one.
 */
function errorIn(line: string): ServerError | undefined {
  const [start, code = '', ...words] = line.split(' ');
  if (start !== 'ERR' || code === '' || line.includes('\t')) return undefined;
  return new ServerError(code, words.join(' ').replaceAll('+', ' '));
}
