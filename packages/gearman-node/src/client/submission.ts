import {
  checkChoice,
  checkFunctionName,
  checkPayload,
  checkRange,
  checkText,
  checkUnique,
  refuse,
} from '../argument-checks.ts';
import { GearmanError } from '../errors.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';
import { type JobPriority, PRIORITIES, SUBMIT_PACKETS } from '../submit-packets.ts';

/** How one job is submitted. */
export interface SubmitOptions {
  /**
   * Jobs of one function with the same key are one job to the server. At most 63 bytes. Default: none. Do not use
   * one key for foreground and background jobs: gearmand may lose the background one.
   */
  readonly unique?: string | undefined;
  /** Default `normal`, the only one that a job with `startAt` or `reducer` can have. */
  readonly priority?: JobPriority | undefined;
  /** The job outlives the client, which gets no result. Default false. */
  readonly background?: boolean | undefined;
  /**
   * When the job may begin, to the second (SUBMIT_JOB_EPOCH); only for a background job. gearmand before 2.0.0 wakes
   * no sleeping worker for it: it begins when a worker asks next. Default: at once.
   */
  readonly startAt?: Date | undefined;
  /**
   * A name that goes along to a worker which takes reducers (SUBMIT_REDUCE_JOB). It must not be combined with
   * `startAt`. Default: none.
   */
  readonly reducer?: string | undefined;
  /** What goes along to the server beside `reducer`, without a NUL. libgearman leaves it empty. Default: empty. */
  readonly aggregator?: string | undefined;
  /** Stops waiting for the job. Gearman has no way to stop the job itself. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the job must have ended, waiting for a server included; at least 1. Default: no limit. */
  readonly timeout?: number | undefined;
  /**
   * What to do with the job when its server is lost while it is in flight: `reject` (default) with JobLostError, or
   * `resubmit` it, for as long as it takes, to the first server that can be reached. The job may then run twice.
   */
  readonly onServerLost?: 'reject' | 'resubmit' | undefined;
}

/** The packets that submit a job; no server knows SUBMIT_JOB_SCHED. */
type SubmitPacket = Exclude<Extract<PacketName, `SUBMIT_${string}`>, 'SUBMIT_JOB_SCHED'>;

/** The packet that submits a job, and what it carries. */
export interface Submission {
  readonly packet: SubmitPacket;
  readonly arguments: ArgumentValues<SubmitPacket>;
}

/** @throws GearmanError `invalid-argument` for what no server takes, or for options that exclude each other */
export function submissionOf(
  functionName: string,
  payload: string | Uint8Array,
  options: SubmitOptions,
): Submission {
  const { unique = '', priority = 'normal', background = false, startAt, reducer, aggregator = '' } = options;
  checkFunctionName(functionName);
  checkPayload(payload);
  checkUnique(unique);
  checkChoice('priority', priority, PRIORITIES);
  checkText('aggregator', aggregator);
  checkWait(options);
  if (startAt === undefined && reducer === undefined) {
    refuseIf(aggregator !== '', 'an aggregator goes with a reducer only');
    const packet = SUBMIT_PACKETS[background ? 'background' : 'foreground'][priority];
    return { packet, arguments: [functionName, unique, payload] };
  }
  refuseIf(priority !== 'normal', 'a job with startAt or a reducer has the priority normal');
  if (startAt !== undefined) {
    refuseIf(reducer !== undefined, 'a job has either startAt or a reducer');
    refuseIf(!background, 'only a background job can have startAt');
    return { packet: 'SUBMIT_JOB_EPOCH', arguments: [functionName, unique, epochOf(startAt), payload] };
  }
  checkFunctionName(reducer as string);
  return {
    packet: background ? 'SUBMIT_REDUCE_JOB_BACKGROUND' : 'SUBMIT_REDUCE_JOB',
    arguments: [functionName, unique, reducer as string, aggregator, payload],
  };
}

/** Time limit of the job, and what to do when its server is lost. */
function checkWait({ background, signal, timeout, onServerLost = 'reject' }: SubmitOptions): void {
  refuseIf(background !== undefined && typeof background !== 'boolean', 'background is true or false');
  if (signal !== undefined && !(signal instanceof AbortSignal))
    refuse('signal', signal, 'give an AbortSignal');
  checkRange('timeout', timeout, 1, Number.POSITIVE_INFINITY);
  checkChoice('onServerLost', onServerLost, ['reject', 'resubmit']);
}

/** Whole seconds since 1970, no sooner than the date says. */
function epochOf(date: Date): number {
  if (!(date instanceof Date)) refuse('startAt', date, 'give a Date');
  const epoch = Math.ceil(date.getTime() / 1000);
  refuseIf(!(epoch >= 0), 'startAt is no date from 1970 on');
  return epoch;
}

function refuseIf(isWrong: boolean, reason: string): void {
  if (isWrong) throw new GearmanError('invalid-argument', `the job cannot be submitted: ${reason}`);
}
