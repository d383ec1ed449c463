import {
  checkChoice,
  checkFunctionName,
  checkNames,
  checkPayload,
  checkRange,
  checkText,
  checkUnique,
  type OptionNames,
  refuse,
} from '../argument-checks.ts';
import { GearmanError } from '../errors.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';
import { type JobPriority, PRIORITIES, SUBMIT_PACKETS } from '../submit-packets.ts';

/** Options of {@link Client.submit}. */
export interface SubmitOptions {
  /**
   * The server coalesces jobs of one function with the same key. At most 63 bytes. Default: none. Do not use the same
   * key for foreground and background jobs: gearmand may lose the background job.
   */
  readonly unique?: string | undefined;
  /** Priority of the job. Default `normal`, the only priority of jobs with `startAt` or `reducer`. */
  readonly priority?: JobPriority | undefined;
  /** True if the job does not depend on the client, which gets no result. Default false. */
  readonly background?: boolean | undefined;
  /**
   * Earliest start time of a background job, in whole seconds (SUBMIT_JOB_EPOCH). gearmand before 2.0.0 does not wake
   * sleeping workers for such a job, which starts with a worker's next grab. Default: immediately.
   */
  readonly startAt?: Date | undefined;
  /** A name for workers that use GRAB_JOB_ALL (SUBMIT_REDUCE_JOB). It excludes `startAt`. Default: none. */
  readonly reducer?: string | undefined;
  /** Sent to the server with `reducer`; may not contain a NUL. libgearman leaves it empty. Default: empty. */
  readonly aggregator?: string | undefined;
  /** Stops waiting for the job. Gearman has no way to stop the job itself. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout of the job in milliseconds, including the wait for a server; at least 1. Default: none. */
  readonly timeout?: number | undefined;
  /**
   * What to do when the connection to the server is lost while the job is in flight: `reject` (default) with
   * JobLostError, or `resubmit` it to the first reachable server, with no time limit. The job may then run twice.
   */
  readonly onServerLost?: 'reject' | 'resubmit' | undefined;
}

const OPTIONS: OptionNames<SubmitOptions> = {
  unique: true,
  priority: true,
  background: true,
  startAt: true,
  reducer: true,
  aggregator: true,
  signal: true,
  timeout: true,
  onServerLost: true,
};

/** The packets that submit a job. No server supports SUBMIT_JOB_SCHED. */
type SubmitPacket = Exclude<Extract<PacketName, `SUBMIT_${string}`>, 'SUBMIT_JOB_SCHED'>;

/** The packet that submits a job, with its arguments. */
export interface Submission {
  readonly packet: SubmitPacket;
  readonly arguments: ArgumentValues<SubmitPacket>;
}

/** @throws GearmanError `invalid-argument` for invalid arguments, or for options that exclude each other */
export function submissionOf(
  functionName: string,
  payload: string | Uint8Array,
  options: SubmitOptions,
): Submission {
  checkNames('the options of a job', options, OPTIONS);
  const { unique = '', priority = 'normal', background = false, startAt, reducer, aggregator = '' } = options;
  checkFunctionName(functionName);
  checkPayload(payload);
  checkUnique(unique);
  checkChoice('priority', priority, PRIORITIES);
  checkText('aggregator', aggregator);
  checkWait(options);
  if (startAt === undefined && reducer === undefined) {
    refuseIf(aggregator !== '', 'aggregator requires a reducer');
    const packet = SUBMIT_PACKETS[background ? 'background' : 'foreground'][priority];
    return { packet, arguments: [functionName, unique, payload] };
  }
  refuseIf(priority !== 'normal', 'a job with startAt or a reducer must have the priority normal');
  if (startAt !== undefined) {
    refuseIf(reducer !== undefined, 'startAt and reducer exclude each other');
    refuseIf(!background, 'startAt requires a background job');
    return { packet: 'SUBMIT_JOB_EPOCH', arguments: [functionName, unique, epochOf(startAt), payload] };
  }
  checkFunctionName(reducer as string);
  return {
    packet: background ? 'SUBMIT_REDUCE_JOB_BACKGROUND' : 'SUBMIT_REDUCE_JOB',
    arguments: [functionName, unique, reducer as string, aggregator, payload],
  };
}

/** Checks the options for waiting on the job. */
function checkWait({ background, signal, timeout, onServerLost = 'reject' }: SubmitOptions): void {
  refuseIf(background !== undefined && typeof background !== 'boolean', 'background must be true or false');
  if (signal !== undefined && !(signal instanceof AbortSignal))
    refuse('signal', signal, 'give an AbortSignal');
  checkRange('timeout', timeout, 1, Number.POSITIVE_INFINITY);
  checkChoice('onServerLost', onServerLost, ['reject', 'resubmit']);
}

/** Seconds since 1970, rounded up. */
function epochOf(date: Date): number {
  if (!(date instanceof Date)) refuse('startAt', date, 'give a Date');
  const epoch = Math.ceil(date.getTime() / 1000);
  refuseIf(!(epoch >= 0), 'startAt must be a valid date after 1969');
  return epoch;
}

function refuseIf(isWrong: boolean, reason: string): void {
  if (isWrong) throw new GearmanError('invalid-argument', `the job cannot be submitted: ${reason}`);
}
