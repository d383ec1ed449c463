import type { ServerAddress } from '../connection/server-address.ts';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Job } from './job.ts';

/** How a {@link Client} is set up. */
export interface ClientOptions {
  /** Tried in this order; the first one that answers gets the jobs. */
  readonly servers: readonly ServerAddress[];
  readonly clientId?: string;
  readonly logger?: Logger;
  /** Milliseconds a server may leave a request unanswered before its connection is given up. Default 30,000. */
  readonly timeout?: number;
}

/** How one job is submitted. */
export interface SubmitOptions {
  /** Jobs of one function with the same key are one job. At most 63 bytes. */
  readonly unique?: string;
  /** Default `normal`. */
  readonly priority?: 'low' | 'normal' | 'high';
  /** The job outlives the client, which gets no result. Default false. */
  readonly background?: boolean;
  /** Stops waiting for the job; Gearman has no way to stop the job itself. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the job must have ended. Default: no limit. */
  readonly timeout?: number;
  /** What to do with a job in flight when its server is lost. Default `reject`, with JobLostError. */
  readonly onServerLost?: 'reject' | 'resubmit';
}

/** What a server knows of a job. */
export interface JobStatus {
  readonly known: boolean;
  readonly running: boolean;
  readonly numerator: number;
  readonly denominator: number;
}

/** Submits jobs. */
export class Client implements AsyncDisposable {
  constructor(_options: ClientOptions) {}

  submit(_functionName: string, _payload?: string | Uint8Array, _options?: SubmitOptions): Job {
    throw new GearmanError('closed', 'not there yet');
  }

  async status(_handle: string): Promise<JobStatus> {
    throw new GearmanError('closed', 'not there yet');
  }

  async close(): Promise<void> {
    throw new GearmanError('closed', 'not there yet');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
