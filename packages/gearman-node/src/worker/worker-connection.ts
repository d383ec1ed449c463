import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Packet } from '../codec/packet.ts';
import { tooLarge } from '../codec/packet-size.ts';
import { Connection } from '../connection/connection.ts';
import type { PacedServer } from '../connection/paced-server.ts';
import { ReplyTimer } from '../connection/reply-timer.ts';
import { formatAddress } from '../connection/server-address.ts';
import { ConnectionError, type GearmanError, ProtocolError, ServerError } from '../errors.ts';
import type { PacketName } from '../packets.ts';
import { Abilities, MANY } from './abilities.ts';
import { EchoConfirmation } from './echo-confirmation.ts';
import { GRAB_PACKETS, GrabWindow } from './grab-window.ts';
import { BATCH, type RegistrationPacket, RegistrationQueue } from './registration-queue.ts';
import type { ServerKnowledge } from './server-knowledge.ts';
import { SpinGuard } from './spin-guard.ts';
import { handlerOf, notOffered, timeoutOf, type WorkerFunction } from './worker-function.ts';
import {
  AssignedJob,
  type JobConnection,
  type JobHandler,
  type JobOutcome,
  logOutcome,
  runHandler,
} from './worker-job.ts';
import type { WorkerContext } from './worker-options.ts';

/** ERROR codes that are never a reply to a grab, but to a WORK_* packet or a CAN_DO. */
const NOT_OF_A_GRAB: ReadonlySet<string> = new Set(['JOB_NOT_FOUND', 'ACCESS_DENIED']);

/** Interval of grabs while asleep, in milliseconds, because servers do not send a NOOP for every job. */
const GRAB_INTERVAL = 30_000;

/**
 * A worker's side of one connection: registered functions, outstanding grabs, and assigned jobs. It ends with the
 * connection, because the server drops this state too.
 */
export class WorkerConnection {
  /** Resolves with the reason when the connection has closed. */
  readonly closed: Promise<GearmanError>;
  readonly #peer: string;
  readonly #context: WorkerContext;
  readonly #server: PacedServer;
  readonly #known: ServerKnowledge;
  readonly #connection: Connection;
  readonly #abilities = new Abilities<WorkerFunction>();
  readonly #registrations = new RegistrationQueue({
    send: (packet, name) => this.#register(packet, name),
    confirm: () => this.#echo.request(),
    onEmpty: () => this.#onRegistered(),
  });
  /** Numbers of running jobs by function. */
  readonly #running = new Map<string, number>();
  /** Time limit of requests, in milliseconds. */
  readonly #timeout: number;
  readonly #grabs: ReplyTimer;
  readonly #echo: EchoConfirmation;
  readonly #grabWindow = new GrabWindow();
  readonly #spinGuard = new SpinGuard();
  readonly #jobConnection: JobConnection;
  readonly #interval: NodeJS.Timeout;
  /** Resolves when all functions that were declared before the connection was made are in the queue. */
  readonly #offered: Promise<void>;
  #pause: NodeJS.Timeout | undefined;
  #isDropScheduled = false;
  /** True if the server has not confirmed the last CANT_DO. */
  #isDeregistering = false;
  /**
   * `awake`: the server may have jobs. `served`: it had one job, and probably has no other. `drained`: it has none, and
   * grabs are outstanding. `asleep`: NOOP wakes the worker.
   */
  #state: 'awake' | 'served' | 'drained' | 'asleep' = 'awake';
  /** The packet that grabs jobs. A server that supports only GRAB_JOB replies to the first grab with ERROR. */
  #grabPacket: keyof typeof GRAB_PACKETS;
  #isGrabSupported = false;

  constructor(socket: Socket, server: PacedServer, known: ServerKnowledge, context: WorkerContext) {
    this.#peer = formatAddress(server.address);
    this.#server = server;
    this.#known = known;
    this.#context = context;
    this.#grabPacket = context.takesReducers ? 'GRAB_JOB_ALL' : 'GRAB_JOB_UNIQ';
    const { promise, resolve } = Promise.withResolvers<GearmanError>();
    this.closed = promise;
    this.#connection = new Connection(socket, {
      magic: 'REQ',
      peer: this.#peer,
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
      // Only Perl's server supports no other grab, and it expects WORK_FAIL.
      wantsFailAfterException: () => this.#grabPacket === 'GRAB_JOB',
      maxPacketSize: context.maxPacketSize,
    };
    this.#timeout = known.timeoutFor(context.functions().size);
    this.#grabs = new ReplyTimer(this.#timeout, () => this.#onSilence('GRAB_JOB'));
    this.#echo = new EchoConfirmation(known, this.#timeout, {
      send: (token) => this.#connection.send('ECHO_REQ', token),
      onSilence: () => this.#onSilence('ECHO_REQ'),
    });
    this.#interval = setInterval(() => this.#wake(), GRAB_INTERVAL).unref();
    if (context.clientId !== undefined) this.#connection.send('SET_CLIENT_ID', context.clientId);
    this.#offered = this.#offerAll();
  }

  /** True if the connection can use a free slot. */
  get canGrab(): boolean {
    return (
      (this.#state === 'awake' || this.#state === 'served') &&
      this.#pause === undefined &&
      this.#connection.isOpen &&
      this.#abilities.size > 0 &&
      this.#registrations.isEmpty &&
      this.#grabs.outstanding < this.#grabWindow.size &&
      !this.#abilities.hasRemovable(this.#isRunning)
    );
  }

  /** Grabs one job, for which it takes a slot, or goes to sleep. */
  grab(): void {
    if (this.#state === 'served') {
      this.#sleep();
      return;
    }
    this.#context.slots.take();
    this.#grabs.sent();
    this.#connection.send(this.#grabPacket);
  }

  /** Registers added functions. */
  offer(names: Iterable<string>): void {
    const due = this.#abilities.want(names);
    if (due.length === 0) return;
    this.#registrations.add('CAN_DO', due);
    // No server wakes a sleeper for a job of the new function that was submitted earlier.
    this.#state = 'awake';
  }

  /** Deregisters functions that the worker is about to remove, as soon as that is safe. */
  drop(names: Iterable<string>): void {
    const functions = this.#context.functions();
    for (const name of names) {
      const declared = functions.get(name);
      if (declared !== undefined) this.#abilities.drop(name, declared);
    }
    this.#deregisterSoon();
  }

  /** Resolves when the server has processed all sent packets, if it confirms that. Never rejects. */
  async confirm(): Promise<void> {
    await this.#offered;
    await this.#registrations.empty();
    if (this.#connection.isOpen) await this.#echo.request();
  }

  /** Closes the connection once the server has processed all sent packets. */
  async close(): Promise<void> {
    if (this.#connection.isOpen) await this.#echo.request();
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
      self.#server.replied();
      self.#echo.replied(packet.key('data'));
    },
    ERROR: (self, packet) => self.#onError(new ServerError(packet.text('code'), packet.text('text'))),
  };

  /** Registers all functions, over several turns: the functions of 100,000 images would block the event loop. */
  async #offerAll(): Promise<void> {
    let part: string[] = [];
    for (const name of this.#context.functions().keys()) {
      if (part.push(name) < BATCH) continue;
      this.offer(part);
      part = [];
      await nextTurn();
      if (!this.#connection.isOpen) return;
    }
    this.offer(part);
  }

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
    this.#grabReplied();
    this.#grabWindow.drained();
    this.#state = 'drained';
    if (this.#grabs.outstanding === 0) this.#sleep();
    this.#context.slots.give();
  }

  #sleep(): void {
    this.#deregister();
    this.#state = 'asleep';
    this.#connection.send('PRE_SLEEP');
    this.#grabWindow.slept();
    this.#spinGuard.slept();
  }

  /** Fails the job. Otherwise each worker with the same limit would get it in turn. */
  #onOversized(packet: Packet, size: number): void {
    const error = tooLarge(`the ${packet.name} from ${this.#peer}`, size, this.#context.maxPacketSize);
    if (!packet.name.startsWith('JOB_ASSIGN')) throw new ProtocolError('packet-too-large', error.message);
    this.#onJob(packet, () => Promise.reject(error));
  }

  /** @param handler replaces the declared handler */
  #onJob(packet: Packet, handler?: JobHandler): void {
    if (this.#grabs.outstanding === 0) {
      // The job has no slot. After the disconnect the server gives it to another worker.
      const message = `${this.#peer} assigned job ${packet.key('handle')} without an outstanding grab`;
      throw new ProtocolError('packet-unexpected', message);
    }
    this.#grabReplied();
    this.#grabWindow.served();
    this.#spinGuard.served();
    this.#state = this.#grabWindow.isLoneJob && this.#grabs.outstanding === 0 ? 'served' : 'awake';
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
    this.#run(job, handler);
    this.#deregister();
    this.#context.dispatch();
  }

  #run(job: AssignedJob, handler: JobHandler | undefined): void {
    const declared =
      handler ??
      this.#context.functions().get(job.function) ??
      this.#abilities.unwantedHandler(job.function) ??
      notOffered;
    const outcome = runHandler(handlerOf(declared), job);
    if (outcome instanceof Promise)
      void this.#await(job, outcome, declared); // never rejects
    else this.#finish(job, outcome, declared);
  }

  async #await(job: AssignedJob, ending: Promise<JobOutcome>, declared: WorkerFunction): Promise<void> {
    const { jobs, stopReason } = this.#context;
    const timeout = timeoutOf(declared);
    const timer = timeout === undefined ? undefined : setTimeout(() => job.timeOut(timeout), timeout);
    jobs.add(job);
    if (stopReason) job.stop(stopReason);
    this.#running.set(job.function, (this.#running.get(job.function) ?? 0) + 1);
    const outcome = await ending;
    clearTimeout(timer);
    jobs.delete(job);
    const others = (this.#running.get(job.function) as number) - 1;
    if (others > 0) this.#running.set(job.function, others);
    else this.#running.delete(job.function);
    this.#finish(job, outcome, declared);
  }

  #finish(job: AssignedJob, outcome: JobOutcome, declared: WorkerFunction): void {
    const lostPeer = this.#connection.isOpen ? undefined : this.#peer;
    const { logger, logsFailures = true } = this.#context;
    logOutcome(logger, job, outcome, { lostPeer, logsFailures: logsFailures || declared === notOffered });
    job.finish(outcome);
    this.#deregister();
    this.#context.slots.give();
  }

  #register(packet: RegistrationPacket, name: string): void {
    const declared = packet === 'CAN_DO' ? this.#context.functions().get(name) : undefined;
    const timeout = declared && timeoutOf(declared);
    if (packet === 'RESET_ABILITIES') this.#connection.send(packet);
    else if (timeout !== undefined) this.#connection.send('CAN_DO_TIMEOUT', name, timeout);
    else this.#connection.send(packet, name);
  }

  /** Deregisters the unwanted functions for which that is safe. */
  #deregister(): void {
    // The server could be assigning a job of the function. It would requeue the job, which would run twice.
    if (this.#grabs.outstanding > 0 || this.#isDeregistering || !this.#registrations.isEmpty) return;
    const removal = this.#abilities.takeRemovable(this.#isRunning, this.#running.size === 0);
    if (removal.reset) {
      this.#registrations.add('RESET_ABILITIES', ['']);
      this.#registrations.add('CAN_DO', removal.register);
    } else {
      this.#registrations.add('CANT_DO', removal.deregister);
      const isSlow = this.#abilities.size >= MANY || this.#abilities.hasRemovable(this.#isRunning);
      if (isSlow && removal.deregister.length > 0) void this.#confirmDeregistration(); // never rejects
    }
  }

  /** Collects the functions that are removed until the server has processed CANT_DO. */
  async #confirmDeregistration(): Promise<void> {
    this.#isDeregistering = true;
    await this.confirm();
    this.#isDeregistering = false;
    if (!this.#connection.isOpen) return;
    this.#deregister();
    this.#context.dispatch();
  }

  /** Collects the functions that are removed in one turn of the event loop. */
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
    this.#deregister();
    // If a PRE_SLEEP was sent in the meantime, the server sends no NOOP for earlier jobs of these functions.
    if (this.#state === 'asleep' && this.#abilities.size > 0) this.#state = 'awake';
    this.#context.dispatch();
  }

  #grabReplied(): void {
    this.#isGrabSupported = true;
    this.#server.replied();
    this.#grabs.replied();
  }

  #onError(error: ServerError): void {
    const isFirstGrab =
      !this.#isGrabSupported && this.#grabs.outstanding > 0 && !NOT_OF_A_GRAB.has(error.serverCode);
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

  #onSilence(request: PacketName): void {
    const message = `${this.#peer} did not reply to ${request} within ${this.#timeout} ms; reconnecting`;
    this.#connection.destroy(new ConnectionError('server-silent', message));
  }

  #onClose(error: GearmanError): void {
    clearInterval(this.#interval);
    clearTimeout(this.#pause);
    this.#registrations.end();
    this.#echo.end();
    for (const job of this.#context.jobs) {
      if (job.connection !== this.#jobConnection) continue;
      job.loseConnection(error);
      if (this.#context.onServerLost === 'abort') job.stop(error);
    }
    this.#known.closed(error);
    const unanswered = this.#grabs.outstanding;
    this.#grabs.stop();
    for (let grab = 0; grab < unanswered; grab += 1) this.#context.slots.give();
  }
}
