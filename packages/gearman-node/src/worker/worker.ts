import { EventEmitter } from 'node:events';
import type { ServerAddress } from '../connection/server-address.ts';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { JobHandler } from './worker-job.ts';

/** How a {@link Worker} is set up. */
export interface WorkerOptions {
  /** Every server is served at the same time. */
  readonly servers: readonly ServerAddress[];
  /** Shown by the admin command `workers` (SET_CLIENT_ID). */
  readonly clientId?: string;
  /** How many jobs run at a time, over all servers together. Default 1. */
  readonly concurrency?: number;
  readonly logger?: Logger;
  /** Milliseconds a server may leave a request unanswered before its connection is given up. Default 30,000. */
  readonly timeout?: number;
  /** Milliseconds between two attempts to connect: they grow from `minDelay` (100) to `maxDelay` (5,000). */
  readonly reconnect?: { readonly minDelay?: number; readonly maxDelay?: number };
  /** What happens to a running job when its server is lost: it runs to its end (default), or its signal aborts. */
  readonly onServerLost?: 'finish' | 'abort';
}

/** The events of a {@link Worker}. */
export interface WorkerEvents {
  connect: [server: ServerAddress];
  disconnect: [server: ServerAddress, error: GearmanError];
}

/** Offers functions to job servers and runs the jobs they hand out. */
export class Worker extends EventEmitter<WorkerEvents> implements AsyncDisposable {
  constructor(_options: WorkerOptions) {
    super();
  }

  /** The functions that are declared now. */
  get functions(): ReadonlySet<string> {
    throw new GearmanError('closed', 'not there yet');
  }

  /** Declares the whole set of functions; each server is told what was added and what is gone. */
  setFunctions(_functions: Readonly<Record<string, JobHandler>> | ReadonlyMap<string, JobHandler>): void {
    throw new GearmanError('closed', 'not there yet');
  }

  add(_name: string, _handler: JobHandler): void {
    throw new GearmanError('closed', 'not there yet');
  }

  remove(_name: string): void {
    throw new GearmanError('closed', 'not there yet');
  }

  /** Resolves once every connected server has processed the functions declared up to now. */
  async registered(_options?: { readonly signal?: AbortSignal; readonly timeout?: number }): Promise<void> {
    throw new GearmanError('closed', 'not there yet');
  }

  /** Drains: takes nothing new, finishes what runs, hangs up. An aborted signal reaches the handlers that run. */
  async close(_options?: { readonly signal?: AbortSignal }): Promise<void> {
    throw new GearmanError('closed', 'not there yet');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
