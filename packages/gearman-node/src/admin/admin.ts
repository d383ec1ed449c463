import type { ServerAddress } from '../connection/server-address.ts';
import { GearmanError } from '../errors.ts';

/** One line of the admin command `status`. */
export interface FunctionStatus {
  readonly name: string;
  /** Jobs queued and running. */
  readonly total: number;
  readonly running: number;
  /** Connections that offer the function. */
  readonly availableWorkers: number;
}

/** One line of the admin command `workers`. */
export interface WorkerInfo {
  readonly fd: number;
  readonly ip: string;
  /** `-` for a connection that set none. */
  readonly clientId: string;
  readonly functions: readonly string[];
}

/** Speaks the admin text protocol with one server. */
export class Admin implements AsyncDisposable {
  constructor(_address: ServerAddress, _options?: { readonly timeout?: number }) {}

  async status(): Promise<FunctionStatus[]> {
    throw new GearmanError('closed', 'not there yet');
  }

  async workers(): Promise<WorkerInfo[]> {
    throw new GearmanError('closed', 'not there yet');
  }

  async version(): Promise<string> {
    throw new GearmanError('closed', 'not there yet');
  }

  async close(): Promise<void> {
    throw new GearmanError('closed', 'not there yet');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
