import {
  checkFunctionName,
  checkHandle,
  checkNames,
  checkRange,
  MAX_TIMER_DELAY,
  type OptionNames,
} from '../argument-checks.ts';
import { openSocket } from '../connection/open-socket.ts';
import { checkServer } from '../connection/peer-options.ts';
import { DEFAULT_TIMEOUT } from '../connection/reply-timer.ts';
import { formatAddress, type ServerAddress } from '../connection/server-address.ts';
import { GearmanError } from '../errors.ts';
import {
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

/** Options of an {@link Admin}. */
export interface AdminOptions {
  /** Timeout in milliseconds for connecting, and for the reply to a command. Default 30,000. */
  readonly timeout?: number | undefined;
  /** Maximum size of a reply in bytes. Default 64 MiB. */
  readonly maxReplySize?: number | undefined;
}

const OPTIONS: OptionNames<AdminOptions> = { timeout: true, maxReplySize: true };

const DEFAULT_MAX_REPLY_SIZE = 64 * 1024 * 1024;

/**
 * A client of the admin text protocol for one server. It connects with the first command, and reconnects after the
 * connection was lost. Each method throws a ServerError if the server rejects the command, a ConnectionError, or a
 * ProtocolError if the reply is malformed or too large. The Python server does not reply to unknown commands.
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
    checkNames('the options of an Admin', options, OPTIONS);
    checkRange('timeout', options.timeout, 1, MAX_TIMER_DELAY);
    checkRange('maxReplySize', options.maxReplySize, 1, Number.POSITIVE_INFINITY);
    this.#address = address;
    this.#timeout = options.timeout ?? DEFAULT_TIMEOUT;
    this.#maxReplySize = options.maxReplySize ?? DEFAULT_MAX_REPLY_SIZE;
  }

  /**
   * The server's functions. gearmand also lists functions without workers.
   *
   * @param isWanted returns false for a function to leave out, which saves memory if there are many. Default: all.
   */
  async status(isWanted?: (status: FunctionStatus) => boolean): Promise<FunctionStatus[]> {
    return await this.#list('status', parseStatus, isWanted);
  }

  /** The server's functions, with the number of waiting jobs by priority. */
  async priorityStatus(): Promise<FunctionPriorityStatus[]> {
    return await this.#list('prioritystatus', parsePriorityStatus);
  }

  /** The server's connections, with the functions that each has registered. */
  async workers(): Promise<WorkerInfo[]> {
    return await this.#list('workers', parseWorker);
  }

  /** The server's jobs, waiting and running. */
  async showJobs(): Promise<QueuedJob[]> {
    return await this.#list('show jobs', parseJob);
  }

  /** The unique keys of the server's jobs. */
  async showUniqueJobs(): Promise<string[]> {
    return await this.#list('show unique jobs', (line) => line);
  }

  /** The server's version, for instance `1.1.20`. */
  async version(): Promise<string> {
    return parseValue(await this.#line('version'));
  }

  /** The server's log level, for instance `ERROR`. */
  async verbose(): Promise<string> {
    return parseValue(await this.#line('verbose'));
  }

  /** The server's process id. */
  async pid(): Promise<number> {
    return parsePid(await this.#line('getpid'));
  }

  /** Limits the number of queued jobs of a function; 0 or less removes the limit. */
  async maxQueue(functionName: string, limit: number): Promise<void> {
    checkFunctionName(functionName);
    checkRange('limit', limit, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    checkDone(await this.#line('maxqueue', functionName, limit));
  }

  /** Creates a function before a worker registers it. */
  async createFunction(functionName: string): Promise<void> {
    checkFunctionName(functionName);
    checkDone(await this.#line('create function', functionName));
  }

  /** Removes a function that has neither jobs nor workers. */
  async dropFunction(functionName: string): Promise<void> {
    checkFunctionName(functionName);
    checkDone(await this.#line('drop function', functionName));
  }

  /**
   * Cancels a job; its clients get WORK_FAIL. A queued job never runs. No worker learns that its job is cancelled;
   * gearmand keeps such a job, as ignored, until its worker ends it.
   */
  async cancelJob(handle: string): Promise<void> {
    checkHandle(handle);
    checkDone(await this.#line('cancel job', handle));
  }

  /** Shuts the server down; with `graceful`, after its running jobs. gearmand 1.1.20 does not support this command. */
  async shutdown(options: { readonly graceful?: boolean } = {}): Promise<void> {
    checkNames('the options of shutdown', options, { graceful: true });
    checkDone(await this.#line('shutdown', ...(options.graceful ? ['graceful'] : [])));
  }

  /** Closes the connection. */
  async close(): Promise<void> {
    const reason = new GearmanError('closed', 'the admin connection was closed');
    this.#stop.abort(reason);
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.close(reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Parses each line when it arrives. Parsing 100,000 lines together would block the event loop. */
  async #list<T>(
    command: string,
    parse: (line: string) => T,
    isWanted: (item: T) => boolean = () => true,
  ): Promise<T[]> {
    const items: T[] = [];
    await this.#run(formatCommand(command, []), true, (line) => {
      const item = parse(line);
      if (isWanted(item)) items.push(item);
    });
    return items;
  }

  async #line(command: string, ...args: (string | number)[]): Promise<string> {
    let reply = '';
    await this.#run(formatCommand(command, args), false, (line) => {
      reply = line;
    });
    return reply;
  }

  async #run(line: string, isList: boolean, onLine: (line: string) => void): Promise<void> {
    if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
    this.#connection ??= this.#connect();
    const connection = await this.#connection;
    await connection.run(line, isList, onLine);
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
