import type { Socket } from 'node:net';
import type { Packet } from '../codec/packet.ts';
import { tooLarge } from '../codec/packet-size.ts';
import { Connection } from '../connection/connection.ts';
import type { PacedServer } from '../connection/paced-server.ts';
import type { PeerOptions } from '../connection/peer-options.ts';
import { DEFAULT_TIMEOUT } from '../connection/reply-timer.ts';
import { formatAddress } from '../connection/server-address.ts';
import { ConnectionError, GearmanError, ProtocolError, ServerError } from '../errors.ts';
import type { PacketName } from '../packets.ts';
import { ABANDONED, JobSubscribers, type Subscriber } from './job-subscribers.ts';
import { RequestQueue } from './request-queue.ts';
import type { SubmittedJob } from './submitted-job.ts';

/** Maximum number of jobs whose status is requested at a time, the least recently requested first. */
const STATUS_REQUESTS = 100;

/** Packets with data of a job. A packet over the limit fails only its job. */
const WORK_PACKETS: ReadonlySet<PacketName> = new Set([
  'WORK_COMPLETE',
  'WORK_EXCEPTION',
  'WORK_DATA',
  'WORK_WARNING',
]);

/** A client's side of one connection: requests without a reply, and jobs in flight. */
export class ClientConnection {
  readonly #server: PacedServer;
  readonly #peer: string;
  readonly #options: PeerOptions;
  readonly #timeout: number;
  readonly #connection: Connection;
  readonly #requests: RequestQueue;
  readonly #jobs = new Map<string, JobSubscribers>();
  /** Jobs that have paused the connection because no loop reads their events. */
  readonly #pausing = new Set<SubmittedJob>();
  readonly #statusTimer: NodeJS.Timeout;

  constructor(socket: Socket, server: PacedServer, options: PeerOptions) {
    const { clientId, maxPacketSize, timeout = DEFAULT_TIMEOUT } = options;
    this.#server = server;
    this.#peer = formatAddress(server.address);
    this.#options = options;
    this.#timeout = timeout;
    this.#requests = new RequestQueue(timeout, () => this.#onSilence());
    this.#statusTimer = setInterval(() => this.#requestStatus(), timeout).unref();
    this.#connection = new Connection(socket, {
      magic: 'REQ',
      peer: this.#peer,
      maxPacketSize,
      onPacket: (packet) => ClientConnection.#handlers[packet.name]?.(this, packet),
      onOversized: (packet, size) => this.#onOversized(packet, size),
      onClose: (error) => this.#onClose(error),
    });
    // Does not wait for the reply, because the Python server sends none.
    this.#connection.send('OPTION_REQ', 'exceptions');
    if (clientId !== undefined) this.#connection.send('SET_CLIENT_ID', clientId);
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  /** Does nothing for a job that has ended. */
  submit(job: SubmittedJob): void {
    const { submission } = job;
    if (!submission) return;
    this.#connection.send(submission.packet, ...submission.arguments);
    this.#requests.push({
      expects: 'JOB_CREATED',
      // Runs synchronously, because WORK_COMPLETE may be in the same chunk.
      onReply: (packet) => this.#accepted(job, packet.key('handle')),
      onFailure: (error) => (error instanceof ServerError ? job.reject(error) : job.lose(error)),
    });
  }

  /** Requests the status of a job, and returns the reply. */
  async ask(
    name: 'GET_STATUS' | 'GET_STATUS_UNIQUE',
    expects: 'STATUS_RES' | 'STATUS_RES_UNIQUE',
    argument: string,
  ): Promise<Packet> {
    const { promise, resolve, reject } = Promise.withResolvers<Packet>();
    this.#connection.send(name, argument);
    this.#requests.push({ expects, onReply: resolve, onFailure: reject });
    return await promise;
  }

  async close(reason: GearmanError): Promise<void> {
    await this.#connection.close(reason);
  }

  static readonly #handlers: {
    readonly [N in PacketName]?: (self: ClientConnection, packet: Packet) => void;
  } = {
    JOB_CREATED: (self, packet) => self.#onReply(packet),
    STATUS_RES: (self, packet) => self.#onReply(packet),
    STATUS_RES_UNIQUE: (self, packet) => self.#onReply(packet),
    ERROR: (self, packet) => {
      if (self.#requests.fail(new ServerError(packet.text('code'), packet.text('text'))))
        self.#server.replied();
    },
    WORK_STATUS: (self, packet) => self.#onStatus(packet),
    WORK_DATA: (self, packet) =>
      self
        .#subscribers(packet)
        ?.next()
        .push({ type: 'data', data: packet.bytes('data') }),
    WORK_WARNING: (self, packet) =>
      self
        .#subscribers(packet)
        ?.next()
        .push({ type: 'warning', data: packet.bytes('data') }),
    WORK_COMPLETE: (self, packet) => self.#ended(packet)?.complete(packet.bytes('data')),
    WORK_EXCEPTION: (self, packet) => self.#ended(packet)?.throwException(packet.bytes('data')),
    WORK_FAIL: (self, packet) => self.#ended(packet)?.fail(),
  };

  #onReply(packet: Packet): void {
    if (this.#requests.settle(packet)) this.#server.replied();
  }

  #onOversized(packet: Packet, size: number): void {
    const what = `the ${packet.name} from ${this.#peer}`;
    const { message } = tooLarge(what, size, this.#options.maxPacketSize);
    if (!WORK_PACKETS.has(packet.name)) throw new ProtocolError('packet-too-large', message);
    this.#ended(packet)?.reject(new GearmanError('packet-too-large', message));
  }

  /** Requests the status of jobs in flight, to detect a frozen server and jobs that the server no longer knows. */
  #requestStatus(): void {
    for (const [handle, subscribers] of [...this.#jobs].slice(0, STATUS_REQUESTS)) {
      this.#jobs.delete(handle);
      this.#jobs.set(handle, subscribers);
      this.#connection.send('GET_STATUS', handle);
      this.#requests.push({
        expects: 'STATUS_RES',
        onReply: (packet) => {
          if (packet.key('handle') === handle && packet.key('known') === '0') this.#forgotten(handle);
        },
        onFailure: () => {}, // the connection was lost with all jobs, or the server does not support the request
      });
    }
  }

  /** Loses a job that the server no longer knows. Its final packet would have arrived before this reply. */
  #forgotten(handle: string): void {
    const subscribers = this.#jobs.get(handle);
    this.#jobs.delete(handle);
    const error = new GearmanError('job-lost', `${this.#peer} no longer knows job ${handle}`);
    for (const job of subscribers ?? []) job.lose(error);
  }

  /** Malformed numbers, which come from the worker, affect only its job. */
  #onStatus(packet: Packet): void {
    const job = this.#subscribers(packet)?.next();
    try {
      const [numerator, denominator] = [packet.number('numerator'), packet.number('denominator')];
      job?.push({ type: 'status', numerator, denominator });
    } catch (error) {
      job?.endEvents(error as ProtocolError);
    }
  }

  #accepted(job: SubmittedJob, handle: string): void {
    const subscribers = this.#jobs.get(handle) ?? new JobSubscribers();
    job.accept(handle, {
      pause: () => this.#pauseFor(job),
      resume: () => this.#resumeFor(job),
      abandon: () => subscribers.abandon(job),
    });
    if (job.isBackground) return;
    this.#jobs.set(handle, subscribers);
    subscribers.add(job.isSettled ? ABANDONED : job);
  }

  /**
   * Returns the subscribers of a packet's job. Undefined for a job that has ended, because some servers send a second
   * final packet.
   */
  #subscribers(packet: Packet): JobSubscribers | undefined {
    return this.#jobs.get(packet.key('handle'));
  }

  /** Removes the job of a final packet from the jobs in flight. */
  #ended(packet: Packet): Subscriber | undefined {
    const handle = packet.key('handle');
    const subscribers = this.#jobs.get(handle);
    const job = subscribers?.takeNext();
    if (subscribers?.size === 0) this.#jobs.delete(handle);
    return job;
  }

  #pauseFor(job: SubmittedJob): void {
    this.#pausing.add(job);
    this.#connection.pause();
  }

  #resumeFor(job: SubmittedJob): void {
    this.#pausing.delete(job);
    if (this.#pausing.size === 0) this.#connection.resume();
  }

  #onSilence(): void {
    if (this.#pausing.size > 0) {
      this.#requests.restartTimer();
      return;
    }
    const limit = `${this.#timeout} ms`;
    const message = `${this.#peer} left a request without a reply for ${limit}; its connection is closed`;
    this.#connection.destroy(new ConnectionError('server-silent', message));
  }

  #onClose(error: GearmanError): void {
    clearInterval(this.#statusTimer);
    this.#server.lost();
    if (error.code !== 'closed') this.#options.logger?.warn(error.message);
    this.#requests.end(error);
    for (const subscribers of this.#jobs.values()) {
      for (const job of subscribers) job.lose(error);
    }
    this.#jobs.clear();
  }
}
