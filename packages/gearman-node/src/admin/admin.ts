import { checkFunctionName, checkHandle, checkRange, MAX_TIMER_DELAY } from '../argument-checks.ts';
import { checkServer } from '../connection/check-options.ts';
import { openSocket } from '../connection/open-socket.ts';
import { DEFAULT_TIMEOUT } from '../connection/reply-timer.ts';
import { formatAddress, type ServerAddress } from '../connection/server-address.ts';
import { GearmanError } from '../errors.ts';
import {
  ADMIN_COMMANDS,
  type AdminCommand,
  checkDone,
  type FunctionPriorityStatus,
  type FunctionStatus,
  formatCommand,
  parseJob,
  parsePid,
  parsePriorityStatus,
  parseStatus,
  parseValue,
  parseWorker,
  type QueuedJob,
  type WorkerInfo,
} from './admin-commands.ts';
import { AdminConnection } from './admin-connection.ts';

/** How an {@link Admin} is set up. */
export interface AdminOptions {
  /** Milliseconds until the connection must stand, and for which a command may be left unanswered. Default 30,000. */
  readonly timeout?: number | undefined;
  /** Bytes of the largest reply that is taken. Default 64 MiB. */
  readonly maxReplySize?: number | undefined;
}

const DEFAULT_MAX_REPLY_SIZE = 64 * 1024 * 1024;

/**
 * Speaks the admin text protocol with one server. It connects with the first command, and again after the connection
 * was lost. Each method throws ServerError when the server refuses the command, ConnectionError, and ProtocolError when the
 * reply makes no sense or is too large; python's server leaves a command that it does not know unanswered.
 */
export class Admin implements AsyncDisposable {
  readonly #address: ServerAddress;
  readonly #timeout: number;
  readonly #maxReplySize: number;
  readonly #stop = new AbortController();
  #connection: Promise<AdminConnection> | undefined;

  /** @throws GearmanError `invalid-argument` */
  constructor(address: ServerAddress, options: AdminOptions = {}) {
    checkServer(address);
    checkRange('timeout', options.timeout, 1, MAX_TIMER_DELAY);
    checkRange('maxReplySize', options.maxReplySize, 1, Number.POSITIVE_INFINITY);
    this.#address = address;
    this.#timeout = options.timeout ?? DEFAULT_TIMEOUT;
    this.#maxReplySize = options.maxReplySize ?? DEFAULT_MAX_REPLY_SIZE;
  }

  /** The functions that the server knows. gearmand goes on to list those that nobody offers any more. */
  async status(): Promise<FunctionStatus[]> {
    return (await this.#run('status')).map(parseStatus);
  }

  /** The functions that the server knows, with the jobs that wait, by priority. */
  async priorityStatus(): Promise<FunctionPriorityStatus[]> {
    return (await this.#run('priorityStatus')).map(parsePriorityStatus);
  }

  /** The connections that the server has, and the functions that each offers. */
  async workers(): Promise<WorkerInfo[]> {
    return (await this.#run('workers')).map(parseWorker);
  }

  /** The jobs that the server has, queued and running. */
  async showJobs(): Promise<QueuedJob[]> {
    return (await this.#run('showJobs')).map(parseJob);
  }

  /** The unique keys of the jobs that the server has. */
  async showUniqueJobs(): Promise<string[]> {
    return await this.#run('showUniqueJobs');
  }

  /** The server's version, for instance `1.1.20`. */
  async version(): Promise<string> {
    return parseValue(await this.#line('version'));
  }

  /** What the server logs, for instance `ERROR`. */
  async verbose(): Promise<string> {
    return parseValue(await this.#line('verbose'));
  }

  /** The server's process id. */
  async pid(): Promise<number> {
    return parsePid(await this.#line('pid'));
  }

  /** Limits how many jobs of a function may be queued; 0 or less lifts the limit. */
  async maxQueue(functionName: string, limit: number): Promise<void> {
    checkFunctionName(functionName);
    checkRange('limit', limit, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    checkDone(await this.#line('maxQueue', functionName, limit));
  }

  /** Makes a function known before anybody offers it. */
  async createFunction(functionName: string): Promise<void> {
    checkFunctionName(functionName);
    checkDone(await this.#line('createFunction', functionName));
  }

  /** Makes the server forget a function that has neither jobs nor workers. */
  async dropFunction(functionName: string): Promise<void> {
    checkFunctionName(functionName);
    checkDone(await this.#line('dropFunction', functionName));
  }

  /** Takes a job out of the queue; its client gets WORK_FAIL. */
  async cancelJob(handle: string): Promise<void> {
    checkHandle(handle);
    checkDone(await this.#line('cancelJob', handle));
  }

  /** Ends the server; gracefully, it waits for the jobs that run. gearmand 1.1.20 knows no such command. */
  async shutdown(options: { readonly graceful?: boolean } = {}): Promise<void> {
    checkDone(await this.#line('shutdown', ...(options.graceful ? ['graceful'] : [])));
  }

  /** Hangs up. */
  async close(): Promise<void> {
    const reason = new GearmanError('closed', 'the admin connection was closed');
    this.#stop.abort(reason);
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.close(reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #line(command: AdminCommand, ...args: (string | number)[]): Promise<string> {
    const [line = ''] = await this.#run(command, ...args);
    return line;
  }

  async #run(command: AdminCommand, ...args: (string | number)[]): Promise<string[]> {
    const line = formatCommand(command, args);
    if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
    this.#connection ??= this.#connect();
    const connection = await this.#connection;
    return await connection.run(line, ADMIN_COMMANDS[command].reply);
  }

  async #connect(): Promise<AdminConnection> {
    const forget = () => {
      this.#connection = undefined;
    };
    try {
      const socket = await openSocket(this.#address, { timeout: this.#timeout, signal: this.#stop.signal });
      return new AdminConnection(socket, {
        peer: formatAddress(this.#address),
        timeout: this.#timeout,
        maxReplySize: this.#maxReplySize,
        onClose: forget,
      });
    } catch (error) {
      forget();
      throw error;
    }
  }
}
