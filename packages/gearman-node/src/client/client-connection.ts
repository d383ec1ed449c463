import type { Socket } from 'node:net';
import { DEFAULT_MAX_PACKET_SIZE } from '../codec/decoder.ts';
import type { Packet } from '../codec/packet.ts';
import { tooLarge } from '../codec/packet-size.ts';
import { Connection } from '../connection/connection.ts';
import { ConnectionError, GearmanError, ProtocolError, ServerError } from '../errors.ts';
import type { PacketName } from '../packets.ts';
import { JobSubscribers } from './job-subscribers.ts';
import { RequestQueue } from './request-queue.ts';
import type { SubmittedJob } from './submitted-job.ts';

/** How a {@link ClientConnection} is set up. */
export interface ClientConnectionOptions {
  readonly peer: string;
  readonly clientId: string | undefined;
  readonly timeout: number;
  readonly maxPacketSize: number | undefined;
  /** Called whenever the server has answered a request. */
  readonly onAnswer: () => void;
  readonly onClose: (error: GearmanError) => void;
}

/** What a server knows of a job. */
export interface JobStatus {
  /** Whether the server has the job, queued or running. */
  readonly known: boolean;
  readonly running: boolean;
  /** How far the job has come, as its worker said last, in the worker's unit. */
  readonly numerator: number;
  readonly denominator: number;
}

/** What a server knows of the job with a unique key. */
export interface UniqueJobStatus extends JobStatus {
  /** How many clients wait for its result. */
  readonly clients: number;
}

/** Number of jobs whose status is requested at a time, the least recently requested first. */
const ASKED_AT_A_TIME = 100;

/**
 * Packets with results of a running job. A packet over the limit costs only its job.
 */
const OF_JOBS: ReadonlySet<PacketName> = new Set([
  'WORK_COMPLETE',
  'WORK_EXCEPTION',
  'WORK_DATA',
  'WORK_WARNING',
]);

/** A client's side of one connection: the requests that wait for an answer, and the jobs in flight. */
export class ClientConnection {
  readonly #options: ClientConnectionOptions;
  readonly #connection: Connection;
  readonly #requests: RequestQueue;
  readonly #jobs = new Map<string, JobSubscribers>();
  /** Jobs that have the server held up because their events are not read. */
  readonly #holders = new Set<SubmittedJob>();
  readonly #inquiry: NodeJS.Timeout;

  constructor(socket: Socket, options: ClientConnectionOptions) {
    this.#options = options;
    this.#requests = new RequestQueue(options.timeout, () => this.#onSilence());
    this.#inquiry = setInterval(() => this.#askForJobs(), options.timeout).unref();
    this.#connection = new Connection(socket, {
      magic: 'REQ',
      peer: options.peer,
      maxPacketSize: options.maxPacketSize,
      onPacket: (packet) => ClientConnection.#handlers[packet.name]?.(this, packet),
      onOversized: (packet, size) => this.#onOversized(packet, size),
      onClose: (error) => this.#onClose(error),
    });
    // Its answer is not waited for: python's server sends none.
    this.#connection.send('OPTION_REQ', 'exceptions');
    if (options.clientId !== undefined) this.#connection.send('SET_CLIENT_ID', options.clientId);
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  /** Does nothing for a job that is over. */
  submit(job: SubmittedJob): void {
    const { submission } = job;
    if (!submission) return;
    this.#connection.send(submission.packet, ...submission.arguments);
    this.#requests.push({
      expects: 'JOB_CREATED',
      // In the same turn: the job's WORK_COMPLETE may lie in the same chunk.
      onReply: (packet) => this.#accepted(job, packet.key('handle')),
      onFailure: (error) => (error instanceof ServerError ? job.reject(error) : job.lose(error)),
    });
  }

  async status(handle: string): Promise<JobStatus> {
    return await this.#ask('STATUS_RES', statusIn, 'GET_STATUS', handle);
  }

  async statusByUnique(unique: string): Promise<UniqueJobStatus> {
    return await this.#ask('STATUS_RES_UNIQUE', uniqueStatusIn, 'GET_STATUS_UNIQUE', unique);
  }

  async close(reason: GearmanError): Promise<void> {
    await this.#connection.close(reason);
  }

  static readonly #handlers: {
    readonly [N in PacketName]?: (self: ClientConnection, packet: Packet) => void;
  } = {
    JOB_CREATED: (self, packet) => self.#onAnswer(packet),
    STATUS_RES: (self, packet) => self.#onAnswer(packet),
    STATUS_RES_UNIQUE: (self, packet) => self.#onAnswer(packet),
    ERROR: (self, packet) => {
      if (self.#requests.refuse(new ServerError(packet.text('code'), packet.text('text'))))
        self.#options.onAnswer();
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

  #onAnswer(packet: Packet): void {
    if (this.#requests.answer(packet)) this.#options.onAnswer();
  }

  #onOversized(packet: Packet, size: number): void {
    const { peer, maxPacketSize = DEFAULT_MAX_PACKET_SIZE } = this.#options;
    const { message } = tooLarge(`the ${packet.name} from ${peer}`, size, maxPacketSize);
    if (!OF_JOBS.has(packet.name)) throw new ProtocolError('packet-too-large', message);
    this.#ended(packet)?.reject(new GearmanError('packet-too-large', message));
  }

  /** A frozen server never answers this; a server that no longer knows a job will never end it. */
  #askForJobs(): void {
    for (const [handle, subscribers] of [...this.#jobs].slice(0, ASKED_AT_A_TIME)) {
      this.#jobs.delete(handle);
      this.#jobs.set(handle, subscribers);
      this.#connection.send('GET_STATUS', handle);
      this.#requests.push({
        expects: 'STATUS_RES',
        onReply: (packet) => {
          if (packet.key('handle') === handle && packet.key('known') === '0') this.#forgotten(handle);
        },
        onFailure: () => {}, // the connection loses its jobs anyway, or the server does not support this request
      });
    }
  }

  /** A job's final packet precedes any later answer about it, so this job gets no final packet. */
  #forgotten(handle: string): void {
    const subscribers = this.#jobs.get(handle);
    this.#jobs.delete(handle);
    const error = new GearmanError('job-lost', `${this.#options.peer} no longer knows job ${handle}`);
    for (const job of subscribers ?? []) job.lose(error);
  }

  /** The numbers are as the worker wrote them: what is wrong with them concerns its job alone. */
  #onStatus(packet: Packet): void {
    const job = this.#subscribers(packet)?.next();
    try {
      const [numerator, denominator] = [packet.number('numerator'), packet.number('denominator')];
      job?.push({ type: 'status', numerator, denominator });
    } catch (error) {
      job?.endEvents(error as ProtocolError);
    }
  }

  async #ask<T>(
    expects: PacketName,
    read: (packet: Packet) => T,
    name: 'GET_STATUS' | 'GET_STATUS_UNIQUE',
    argument: string,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<Packet>();
    this.#connection.send(name, argument);
    this.#requests.push({ expects, onReply: resolve, onFailure: reject });
    return read(await promise);
  }

  #accepted(job: SubmittedJob, handle: string): void {
    job.accept(handle, { hold: () => this.#hold(job), release: () => this.#release(job) });
    if (job.isBackground) return;
    const subscribers = this.#jobs.get(handle) ?? new JobSubscribers();
    this.#jobs.set(handle, subscribers);
    subscribers.add(job);
  }

  /** Undefined for a job that is over: some servers send a second final packet. */
  #subscribers(packet: Packet): JobSubscribers | undefined {
    return this.#jobs.get(packet.key('handle'));
  }

  /** The job that the final packet is for. */
  #ended(packet: Packet): SubmittedJob | undefined {
    const subscribers = this.#subscribers(packet);
    const job = subscribers?.takeNext();
    if (subscribers?.size === 0) this.#jobs.delete(packet.key('handle'));
    return job;
  }

  #hold(job: SubmittedJob): void {
    this.#holders.add(job);
    this.#connection.pause();
  }

  #release(job: SubmittedJob): void {
    this.#holders.delete(job);
    if (this.#holders.size === 0) this.#connection.resume();
  }

  #onSilence(): void {
    if (this.#holders.size > 0) {
      this.#requests.restartTimer();
      return;
    }
    const { peer, timeout } = this.#options;
    const message = `${peer} left a request unanswered for ${timeout} ms; its connection is given up`;
    this.#connection.destroy(new ConnectionError('server-silent', message));
  }

  #onClose(error: GearmanError): void {
    clearInterval(this.#inquiry);
    this.#options.onClose(error);
    this.#requests.end(error);
    for (const subscribers of this.#jobs.values()) {
      for (const job of subscribers) job.lose(error);
    }
    this.#jobs.clear();
  }
}

function statusIn(packet: Packet): JobStatus {
  return {
    known: packet.number('known') !== 0,
    running: packet.number('running') !== 0,
    numerator: packet.number('numerator'),
    denominator: packet.number('denominator'),
  };
}

function uniqueStatusIn(packet: Packet): UniqueJobStatus {
  return { ...statusIn(packet), clients: packet.number('clients') };
}
