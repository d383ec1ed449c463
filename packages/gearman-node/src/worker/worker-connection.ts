import type { Socket } from 'node:net';
import { DEFAULT_MAX_PACKET_SIZE } from '../codec/decoder.ts';
import type { Packet } from '../codec/packet.ts';
import { tooLarge } from '../codec/packet-size.ts';
import { Connection } from '../connection/connection.ts';
import { ReplyTimer } from '../connection/reply-timer.ts';
import { ConnectionError, GearmanError, JobFailure, ProtocolError, ServerError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { PacketName } from '../packets.ts';
import { Abilities } from './abilities.ts';
import { EchoConfirmation, type EchoKnowledge } from './echo-confirmation.ts';
import { GrabForecast } from './grab-forecast.ts';
import { type RegistrationPacket, RegistrationQueue } from './registration-queue.ts';
import type { RunningJobs } from './running-jobs.ts';
import type { Slots } from './slots.ts';
import { SpinGuard } from './spin-guard.ts';
import { handlerOf, timeoutOf, type WorkerFunction } from './worker-function.ts';
import {
  AssignedJob,
  type JobConnection,
  type JobHandler,
  type JobOutcome,
  runHandler,
  type WorkerJob,
} from './worker-job.ts';

/** The codes of refusals that answer other packets than a grab: a WORK_* packet, a CAN_DO. */
const NOT_OF_A_GRAB: ReadonlySet<string> = new Set(['JOB_NOT_FOUND', 'ACCESS_DENIED']);

/** From so many functions on RESET_ABILITIES is cheaper for gearmand than as many CANT_DO, each a linear search. */
const RESET_THRESHOLD = 256;

/** How often a sleeper asks anyway, in milliseconds: a NOOP can be lost, and some jobs become due without one. */
const GRAB_INTERVAL = 30_000;

/** The packets that ask for a job, each with the one to try when a server does not know it. */
const GRAB_PACKETS = {
  GRAB_JOB_ALL: 'GRAB_JOB_UNIQ',
  GRAB_JOB_UNIQ: 'GRAB_JOB',
  GRAB_JOB: undefined,
} as const;

/** What a connection shares with its worker. */
export interface WorkerContext {
  /** What is offered now. */
  readonly functions: () => ReadonlyMap<string, WorkerFunction>;
  /** Whether to ask for jobs together with their reducers. */
  readonly takesReducers: boolean;
  readonly slots: Slots;
  readonly jobs: RunningJobs;
  readonly clientId: string | undefined;
  readonly timeout: number;
  readonly onServerLost: 'finish' | 'abort';
  readonly maxPacketSize: number | undefined;
  readonly logger: Logger | undefined;
  /** The connection may grab again. */
  readonly dispatch: () => void;
}

/** State shared by all connections to one server, earlier ones included. */
export interface ServerContext {
  readonly echo: EchoKnowledge;
  /** Called whenever the server has answered a request. */
  readonly onAnswer: () => void;
}

/**
 * A worker's side of one connection: which functions the server knows of, which grabs it owes an answer, which jobs
 * it gave. It ends with the connection, for the server forgets all of it too.
 */
export class WorkerConnection {
  /** Resolves, with the reason, when the connection is over. */
  readonly closed: Promise<GearmanError>;
  readonly #peer: string;
  readonly #context: WorkerContext;
  readonly #onAnswer: () => void;
  readonly #connection: Connection;
  readonly #abilities = new Abilities<WorkerFunction>();
  readonly #registrations = new RegistrationQueue(
    (packet, name) => this.#register(packet, name),
    () => this.#onRegistered(),
  );
  readonly #running = new Map<string, Set<AssignedJob>>();
  readonly #grabs: ReplyTimer;
  readonly #echo: EchoConfirmation;
  readonly #forecast = new GrabForecast();
  readonly #spinGuard = new SpinGuard();
  readonly #jobConnection: JobConnection;
  readonly #interval: NodeJS.Timeout;
  #pause: NodeJS.Timeout | undefined;
  #isDropScheduled = false;
  /**
   * `awake`: there may be jobs. `served`: there was one, and probably no other. `drained`: there are none, and replies
   * to grabs are due. `asleep`: NOOP wakes it.
   */
  #state: 'awake' | 'served' | 'drained' | 'asleep' = 'awake';
  /** Some servers know nothing but GRAB_JOB: that shows as an ERROR in place of the first answer. */
  #grabPacket: keyof typeof GRAB_PACKETS;
  #knowsGrab = false;

  constructor(socket: Socket, peer: string, context: WorkerContext, server: ServerContext) {
    this.#peer = peer;
    this.#context = context;
    this.#onAnswer = server.onAnswer;
    this.#grabPacket = context.takesReducers ? 'GRAB_JOB_ALL' : 'GRAB_JOB_UNIQ';
    const { promise, resolve } = Promise.withResolvers<GearmanError>();
    this.closed = promise;
    this.#connection = new Connection(socket, {
      magic: 'REQ',
      peer,
      maxPacketSize: context.maxPacketSize,
      onPacket: (packet) => WorkerConnection.#handlers[packet.name]?.(this, packet),
      onOversized: (packet, size) => this.#onOversized(packet, size),
      onClose: (error) => {
        this.#onClose(error);
        resolve(error);
      },
    });
    this.#jobConnection = {
      send: (name, ...args) => this.#connection.send(name, ...args),
      writable: () => this.#connection.writable(),
      confirm: () => this.confirm(),
      // Only Perl's server supports no other grab, and it waits for WORK_FAIL.
      wantsFailAfterException: () => this.#grabPacket === 'GRAB_JOB',
      maxPacketSize: context.maxPacketSize,
    };
    this.#grabs = new ReplyTimer(context.timeout, () => this.#giveUp('GRAB_JOB'));
    this.#echo = new EchoConfirmation(server.echo, context.timeout, {
      send: (token) => this.#connection.send('ECHO_REQ', token),
      onSilence: () => this.#giveUp('ECHO_REQ'),
    });
    this.#interval = setInterval(() => this.#wake(), GRAB_INTERVAL).unref();
    if (context.clientId !== undefined) this.#connection.send('SET_CLIENT_ID', context.clientId);
    this.offer(context.functions().keys());
  }

  /** Whether the connection has a use for a free slot. */
  get mayAsk(): boolean {
    return (
      (this.#state === 'awake' || this.#state === 'served') &&
      this.#pause === undefined &&
      this.#connection.isOpen &&
      this.#abilities.size > 0 &&
      this.#registrations.isEmpty &&
      this.#grabs.outstanding < this.#forecast.window &&
      !this.#abilities.hasRemovable(this.#isRunning)
    );
  }

  /** Asks for one job, for which it takes a slot, or to be woken for one. */
  ask(): void {
    if (this.#state === 'served') {
      this.#sleep();
      return;
    }
    this.#context.slots.take();
    this.#grabs.sent();
    this.#connection.send(this.#grabPacket);
  }

  /** The worker offers functions that it did not. */
  offer(names: Iterable<string>): void {
    const due = this.#abilities.want(names);
    if (due.length === 0) return;
    this.#registrations.add('CAN_DO', due);
    // No server wakes a sleeper for a job that waited for the new function.
    this.#state = 'awake';
  }

  /** The worker no longer offers functions, which it still knows. The server is told as soon as that is safe. */
  drop(names: Iterable<string>): void {
    const functions = this.#context.functions();
    for (const name of names) {
      const declared = functions.get(name);
      if (declared !== undefined) this.#abilities.drop(name, declared);
    }
    this.#deregisterSoon();
  }

  /** Resolves when the server has had all that was sent, as far as that can be known. Never rejects. */
  async confirm(): Promise<void> {
    await this.#registrations.empty();
    if (this.#connection.isOpen) await this.#echo.request();
  }

  /** Hangs up when the server has had everything. */
  async hangUp(): Promise<void> {
    await this.confirm();
    await this.#connection.close();
  }

  static readonly #handlers: {
    readonly [N in PacketName]?: (self: WorkerConnection, packet: Packet) => void;
  } = {
    NOOP: (self) => self.#onNoop(),
    NO_JOB: (self) => self.#onNoJob(),
    JOB_ASSIGN: (self, packet) => self.#onJob(packet),
    JOB_ASSIGN_UNIQ: (self, packet) => self.#onJob(packet),
    JOB_ASSIGN_ALL: (self, packet) => self.#onJob(packet),
    ECHO_RES: (self, packet) => {
      self.#onAnswer();
      self.#echo.answered(packet.key('data'));
    },
    ERROR: (self, packet) => self.#onError(new ServerError(packet.text('code'), packet.text('text'))),
  };

  readonly #isRunning = (name: string): boolean => this.#running.has(name);

  #onNoop(): void {
    if (this.#state !== 'asleep') return;
    const pause = this.#spinGuard.woken();
    if (pause > 0) {
      this.#pause = setTimeout(() => {
        this.#pause = undefined;
        this.#context.dispatch();
      }, pause).unref();
    }
    this.#wake();
  }

  #wake(): void {
    this.#state = 'awake';
    this.#context.dispatch();
  }

  #onNoJob(): void {
    if (this.#grabs.outstanding === 0) return;
    this.#grabAnswered();
    this.#forecast.drained();
    this.#state = 'drained';
    if (this.#grabs.outstanding === 0) this.#sleep();
    this.#context.slots.give();
  }

  #sleep(): void {
    this.#deregister();
    this.#state = 'asleep';
    this.#connection.send('PRE_SLEEP');
    this.#forecast.slept();
    this.#spinGuard.slept();
  }

  /** Fails the job; otherwise every worker with the same limit would get it in turn. */
  #onOversized(packet: Packet, size: number): void {
    const error = tooLarge(
      `the ${packet.name} from ${this.#peer}`,
      size,
      this.#context.maxPacketSize ?? DEFAULT_MAX_PACKET_SIZE,
    );
    if (!packet.name.startsWith('JOB_ASSIGN')) throw new ProtocolError('packet-too-large', error.message);
    this.#onJob(packet, () => Promise.reject(error));
  }

  /** @param handler in place of the one that was declared */
  #onJob(packet: Packet, handler?: JobHandler): void {
    if (this.#grabs.outstanding === 0) {
      // It has no slot. Hung up on, the server gives the job to somebody who asks for one.
      const message = `${this.#peer} assigned job ${packet.key('handle')} to a worker that did not ask for one`;
      throw new ProtocolError('packet-unexpected', message);
    }
    this.#grabAnswered();
    this.#forecast.served();
    this.#spinGuard.served();
    const job = new AssignedJob(
      {
        handle: packet.key('handle'),
        function: packet.text('function'),
        unique: packet.name === 'JOB_ASSIGN' ? '' : packet.text('unique'),
        reducer: packet.name === 'JOB_ASSIGN_ALL' ? packet.text('reducer') : '',
        payload: packet.bytes('data'),
      },
      this.#jobConnection,
    );
    void this.#run(job, handler); // it never rejects
    this.#deregister();
    this.#state = this.#forecast.isLoneJob && this.#grabs.outstanding === 0 ? 'served' : 'awake';
    this.#context.dispatch();
  }

  async #run(job: AssignedJob, handler: JobHandler | undefined): Promise<void> {
    const { functions, jobs, slots } = this.#context;
    const declared =
      handler ??
      functions().get(job.function) ??
      this.#abilities.unwantedHandler(job.function) ??
      neverOffered;
    const timeout = timeoutOf(declared);
    const timer =
      timeout === undefined ? undefined : setTimeout(() => job.stop(timedOut(job, timeout)), timeout);
    jobs.add(job);
    const ofFunction = this.#running.get(job.function) ?? new Set();
    this.#running.set(job.function, ofFunction.add(job));

    const outcome = await runHandler(handlerOf(declared), job);

    clearTimeout(timer);
    jobs.delete(job);
    ofFunction.delete(job);
    if (ofFunction.size === 0) this.#running.delete(job.function);
    this.#log(job, outcome);
    job.finish(outcome);
    this.#deregister();
    slots.give();
  }

  #register(packet: RegistrationPacket, name: string): void {
    const declared = packet === 'CAN_DO' ? this.#context.functions().get(name) : undefined;
    const timeout = declared && timeoutOf(declared);
    if (packet === 'RESET_ABILITIES') this.#connection.send(packet);
    else if (timeout !== undefined) this.#connection.send('CAN_DO_TIMEOUT', name, timeout);
    else this.#connection.send(packet, name);
  }

  /** Tells the server which functions are gone, those of them for which that is safe. */
  #deregister(): void {
    // A job that the server assigns at this moment would be taken for dropped, and run twice.
    if (this.#grabs.outstanding > 0) return;
    const removal = this.#abilities.takeRemovable(this.#isRunning, this.#running.size === 0, RESET_THRESHOLD);
    if (removal.reset) {
      this.#registrations.add('RESET_ABILITIES', ['']);
      this.#registrations.add('CAN_DO', removal.register);
    } else {
      this.#registrations.add('CANT_DO', removal.deregister);
    }
  }

  /** Functions that are removed one by one in one go leave in one go. */
  #deregisterSoon(): void {
    if (this.#isDropScheduled) return;
    this.#isDropScheduled = true;
    queueMicrotask(() => {
      this.#isDropScheduled = false;
      this.#deregister();
      this.#context.dispatch();
    });
  }

  #onRegistered(): void {
    // A server that was told PRE_SLEEP meanwhile wakes nobody for a job that waited for one of these functions.
    if (this.#state === 'asleep' && this.#abilities.size > 0) this.#state = 'awake';
    this.#context.dispatch();
  }

  #grabAnswered(): void {
    this.#knowsGrab = true;
    this.#onAnswer();
    this.#grabs.answered();
  }

  #onError(error: ServerError): void {
    const isFirstGrab =
      !this.#knowsGrab && this.#grabs.outstanding > 0 && !NOT_OF_A_GRAB.has(error.serverCode);
    if (!isFirstGrab) {
      this.#context.logger?.warn(`${this.#peer}: ${error.message}`);
      return;
    }
    const next = GRAB_PACKETS[this.#grabPacket];
    if (next === undefined) {
      this.#connection.destroy(error);
    } else {
      this.#grabPacket = next;
      this.#connection.send(next);
    }
  }

  #giveUp(request: PacketName): void {
    const { timeout } = this.#context;
    const message = `${this.#peer} left ${request} unanswered for ${timeout} ms; connecting again`;
    this.#connection.destroy(new ConnectionError('server-silent', message));
  }

  #onClose(error: GearmanError): void {
    clearInterval(this.#interval);
    clearTimeout(this.#pause);
    this.#registrations.end();
    this.#echo.end();
    for (const job of [...this.#running.values()].flatMap((jobs) => [...jobs])) {
      job.loseConnection(error);
      if (this.#context.onServerLost === 'abort') job.stop(error);
    }
    const unanswered = this.#grabs.outstanding;
    this.#grabs.stop();
    for (let grab = 0; grab < unanswered; grab += 1) this.#context.slots.give();
  }

  #log(job: AssignedJob, outcome: JobOutcome): void {
    const name = `job ${job.handle} of ${job.function}`;
    const { logger } = this.#context;
    if (!this.#connection.isOpen) {
      logger?.warn(`${name} ended after ${this.#peer} was lost; its ${outcome.packet} is dropped`);
    } else if (outcome.packet === 'WORK_FAIL') {
      logger?.warn(`${name} failed: ${outcome.error.message}`);
    } else if (outcome.packet === 'WORK_EXCEPTION') {
      logger?.error(`${name} ended in an exception: ${outcome.data}`, { error: outcome.error });
    }
  }
}

function neverOffered(job: WorkerJob): never {
  throw new JobFailure(`this worker does not offer ${job.function}`);
}

function timedOut(job: WorkerJob, timeout: number): GearmanError {
  return new GearmanError('job-timeout', `job ${job.handle} of ${job.function} did not end in ${timeout} ms`);
}
