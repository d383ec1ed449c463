import { EventEmitter, once } from 'node:events';
import { open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { ImageError } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

/** Timeout of a reply in milliseconds. QEMU serves one client at a time, and others wait. */
const TIMEOUT = 10_000;

/** Errors of connecting without a listening QEMU. */
const ABSENT: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ECONNREFUSED']);

/** A message from QEMU: a reply, an event, or the greeting. */
const MESSAGE = new JsonReader({
  type: 'object',
  properties: {
    id: { type: 'integer' },
    return: {},
    error: { type: 'object', required: ['desc'], properties: { desc: { type: 'string' } } },
    event: { type: 'string' },
  },
});

type Message = ReturnType<typeof MESSAGE.parse>;

const END: Message = { error: { desc: 'it has ended' } };

const SILENCE: Message = { error: { desc: `it did not reply within ${TIMEOUT / 1_000} s` } };

/** A connection to a running QEMU (QEMU Machine Protocol). */
export class QmpConnection {
  readonly #socket: Socket;
  readonly #replies = new Map<number, (message: Message) => void>();
  /** Emits `event` for each event of QEMU and at the end. */
  readonly #events = new EventEmitter();
  #lastId = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    createInterface({ input: socket })
      .on('line', (line) => this.#receive(line))
      .on('error', () => {}); // an error of the socket
    socket.once('close', () => {
      for (const reply of this.#replies.values()) reply(END);
      this.#events.emit('event');
    });
  }

  /** Connects to the socket at `path`; undefined if no QEMU listens there. */
  static async open(path: string): Promise<QmpConnection | undefined> {
    const socket = await connectTo(path);
    if (socket === undefined) return undefined;
    const connection = new QmpConnection(socket);
    try {
      await connection.execute('qmp_capabilities');
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  }

  /**
   * Executes a command.
   *
   * @returns QEMU's return value, unchecked
   * @throws ImageError `instance-failed` if QEMU rejects it, ends before it replies, or does not reply
   */
  async execute(command: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const replied = Promise.withResolvers<Message>();
    this.#replies.set(id, replied.resolve);
    const tooLate = setTimeout(() => replied.resolve(SILENCE), TIMEOUT);
    if (this.#socket.destroyed) replied.resolve(END);
    else this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    const { error, return: result } = await replied.promise;
    clearTimeout(tooLate);
    this.#replies.delete(id);
    if (error === undefined) return result;
    throw new ImageError(
      'instance-failed',
      `QEMU failed to execute "${command}": ${error.desc}; check the console log of the instance`,
    );
  }

  /**
   * Waits for an event or the end of QEMU.
   *
   * @throws the signal's reason
   */
  async nextEvent(signal?: AbortSignal): Promise<void> {
    try {
      await once(this.#events, 'event', { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(line: string): void {
    let message: Message;
    try {
      message = MESSAGE.parse(line);
    } catch {
      this.#socket.destroy(); // QEMU was killed in the middle of a line
      return;
    }
    if (message.event !== undefined) this.#events.emit('event');
    else if (message.id !== undefined) this.#replies.get(message.id)?.(message);
  }
}

/** Shares the only connection that QEMU serves among all users. It stays open while it has users. */
export class SharedMonitor {
  readonly #path: string;
  #connection: Promise<QmpConnection | undefined> | undefined;
  #users = 0;

  /** @param path path of QEMU's socket */
  constructor(path: string) {
    this.#path = path;
  }

  /** Runs `work` with the connection and returns its result; undefined if QEMU does not run. */
  async use<T>(work: (qmp: QmpConnection) => Promise<T>): Promise<T | undefined> {
    this.#connection ??= QmpConnection.open(this.#path);
    const connecting = this.#connection;
    this.#users += 1;
    try {
      const connection = await connecting;
      return connection && (await work(connection));
    } finally {
      this.#users -= 1;
      if (this.#users === 0) {
        this.#connection = undefined;
        await connecting.then(
          (connection) => connection?.close(),
          () => {}, // reported above
        );
      }
    }
  }
}

async function connectTo(path: string): Promise<Socket | undefined> {
  const socket = new Socket();
  socket.on('error', () => {}); // 'close' reports the end of an established connection
  try {
    const directory = await open(dirname(path), 'r');
    try {
      // A socket's address is limited to 107 bytes, which a path may exceed.
      socket.connect(join('/proc/self/fd', `${directory.fd}`, basename(path)));
      await once(socket, 'connect');
    } finally {
      await directory.close();
    }
  } catch (error) {
    socket.destroy();
    if (ABSENT.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
  return socket;
}
