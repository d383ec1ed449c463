import type { Socket } from 'node:net';
import { ReplyTimer } from '../connection/reply-timer.ts';
import { ConnectionError, type GearmanError, ServerError } from '../errors.ts';
import type { ReplyKind } from './admin-commands.ts';

/** A command that waits for its reply. */
interface PendingCommand {
  readonly kind: ReplyKind;
  readonly lines: string[];
  readonly resolve: (lines: string[]) => void;
  readonly reject: (error: GearmanError) => void;
}

/** Sends lines over one connected socket and cuts what comes back into replies, in order. */
export class AdminConnection {
  readonly #socket: Socket;
  readonly #peer: string;
  readonly #timer: ReplyTimer;
  readonly #pending: PendingCommand[] = [];
  #text = Buffer.alloc(0);
  #reason: GearmanError | undefined;

  /** @param onClose called once, when the connection is over */
  constructor(socket: Socket, peer: string, timeout: number, onClose: () => void) {
    this.#socket = socket;
    this.#peer = peer;
    this.#timer = new ReplyTimer(timeout, () => {
      this.#reason ??= new ConnectionError(
        'server-silent',
        `${peer} did not answer in ${timeout} ms; it may not know the command`,
      );
      socket.destroy();
    });
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', (cause) => {
      this.#reason ??= this.#lost(cause.message, cause);
    });
    socket.on('close', () => {
      onClose();
      this.#rejectAll();
    });
  }

  /** Sends a line. Returns the lines of the reply, without the dot that ends a list. */
  run(line: string, kind: ReplyKind): Promise<string[]> {
    const { promise, resolve, reject } = Promise.withResolvers<string[]>();
    this.#pending.push({ kind, lines: [], resolve, reject });
    this.#timer.sent();
    this.#socket.write(line);
    return promise;
  }

  /** Hangs up; a command that waits rejects with the reason. */
  async close(reason: GearmanError): Promise<void> {
    this.#reason ??= reason;
    if (this.#socket.destroyed) return;
    const closed = new Promise((resolve) => this.#socket.once('close', resolve));
    this.#socket.destroy();
    await closed;
  }

  #read(chunk: Buffer): void {
    this.#text = Buffer.concat([this.#text, chunk]);
    let start = 0;
    for (let end = this.#text.indexOf('\n'); end >= 0; end = this.#text.indexOf('\n', start)) {
      this.#line(this.#text.toString('utf8', start, end).replace(/\r$/, ''));
      start = end + 1;
    }
    this.#text = this.#text.subarray(start);
  }

  #line(line: string): void {
    const [command] = this.#pending;
    if (!command) return;
    const isFirst = command.lines.length === 0;
    const error = isFirst ? /^ERR (\S+) ?([^\t]*)$/.exec(line) : null;
    if (error) {
      this.#answered();
      command.reject(new ServerError(error[1] as string, (error[2] as string).replaceAll('+', ' ')));
    } else if (command.kind === 'list' && line !== '.') {
      command.lines.push(line);
    } else {
      if (command.kind === 'line') command.lines.push(line);
      this.#answered();
      command.resolve(command.lines);
    }
  }

  #answered(): void {
    this.#pending.shift();
    this.#timer.answered();
  }

  #rejectAll(): void {
    this.#timer.stop();
    const error = this.#reason ?? this.#lost('the server closed it');
    for (const command of this.#pending.splice(0)) command.reject(error);
  }

  #lost(reason: string, cause?: unknown): ConnectionError {
    return new ConnectionError('connection-lost', `the connection to ${this.#peer} was lost: ${reason}`, {
      cause,
    });
  }
}
