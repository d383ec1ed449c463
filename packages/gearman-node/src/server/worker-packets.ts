import { MAX_FUNCTION_NAME_BYTES } from '../argument-checks.ts';
import type { Packet } from '../codec/packet.ts';
import { LongTimer } from '../long-timer.ts';
import type { ServerJob } from './queue-model.ts';
import type { ServerConnection } from './server-connection.ts';
import type { PacketHandler, PacketHandlers, ServerState } from './server-state.ts';

/** Minimum of a time limit in milliseconds, as in gearmand. */
const MIN_TIME_LIMIT = 1000;

/** Handlers of the packets that a worker sends. */
export const WORKER_PACKETS: PacketHandlers = {
  CAN_DO: (from, packet, server) => offer(from, packet, server, undefined),
  CAN_DO_TIMEOUT: (from, packet, server) => offer(from, packet, server, timeLimitOf(packet)),
  CANT_DO: (from, packet, { queue }) => {
    from.timeLimits.delete(packet.key('function'));
    queue.withdraw(from, packet.key('function'));
  },
  RESET_ABILITIES: (from, _packet, { queue }) => {
    from.timeLimits.clear();
    queue.withdrawAll(from);
  },
  PRE_SLEEP: (from, _packet, { queue }) => queue.sleep(from),
  GRAB_JOB: grab((from, job) =>
    from.sendJoined('JOB_ASSIGN', `${job.handle}\0${job.queue.name}\0`, job.payload),
  ),
  GRAB_JOB_UNIQ: grab(assignUnique),
  GRAB_JOB_ALL: grab(assignAll),
  WORK_STATUS: ofRunningJob((_from, packet, job) => {
    // Like gearmand, the server forwards the numbers unchanged. For GET_STATUS an invalid number counts as 0.
    job.numerator = numberOrZero(packet.key('numerator'));
    job.denominator = numberOrZero(packet.key('denominator'));
    for (const client of job.clients) {
      client.send('WORK_STATUS', job.handle, packet.bytes('numerator'), packet.bytes('denominator'));
    }
  }),
  WORK_DATA: ofRunningJob(forwardData),
  WORK_WARNING: ofRunningJob(forwardData),
  WORK_COMPLETE: ofRunningJob((from, packet, job, { queue }) => {
    forwardData(from, packet, job);
    queue.finish(job);
  }),
  WORK_FAIL: ofRunningJob((_from, _packet, job, { queue }) => {
    for (const client of job.clients) client.send('WORK_FAIL', job.handle);
    queue.finish(job);
  }),
  WORK_EXCEPTION: ofRunningJob((_from, packet, job, server) =>
    endWithException(job, packet.bytes('data'), server),
  ),
};

/** Forwards a packet with data to the job's clients. */
function forwardData(_from: ServerConnection, packet: Packet, job: ServerJob): void {
  for (const client of job.clients) {
    client.sendJoined(packet.name, `${job.handle}\0`, packet.bytes('data'));
  }
}

/** Fails the job whose packet exceeds the limit, because a retry would exceed it again. */
export function failOversized(message: string): PacketHandler {
  return ofRunningJob((_from, _packet, job, server) => endWithException(job, message, server));
}

function endWithException(job: ServerJob, data: string | Uint8Array, { queue }: ServerState): void {
  for (const client of job.clients) {
    if (client.wantsExceptions) client.send('WORK_EXCEPTION', job.handle, data);
    else client.send('WORK_FAIL', job.handle);
  }
  queue.finish(job);
}

/**
 * The time limit in a packet. A value that is not decimal means no limit, because npm's gearman sends four binary
 * bytes.
 */
function timeLimitOf(packet: Packet): number | undefined {
  const text = packet.key('timeout');
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** @param timeLimit milliseconds after which another worker gets the job */
function offer(
  from: ServerConnection,
  packet: Packet,
  server: ServerState,
  timeLimit: number | undefined,
): void {
  const name = packet.key('function');
  if (name.length > MAX_FUNCTION_NAME_BYTES) {
    from.send('ERROR', 'ARGUMENT_TOO_LARGE', 'Function name too large');
    return;
  }
  if (!server.permits(from, 'register', name)) {
    from.send('ERROR', 'ACCESS_DENIED', 'Not allowed to register this function');
    return;
  }
  if (timeLimit === undefined) from.timeLimits.delete(name);
  else from.timeLimits.set(name, Math.max(timeLimit, MIN_TIME_LIMIT));
  server.queue.offer(from, name);
}

function grab(assign: (from: ServerConnection, job: ServerJob) => void): PacketHandler {
  return (from, _packet, { queue }) => {
    const job = queue.grab(from);
    if (!job) {
      from.sendJoined('NO_JOB', '');
      return;
    }
    const timeLimit = from.timeLimits.get(job.queue.name);
    if (timeLimit !== undefined) job.timer = new LongTimer(timeLimit, () => queue.requeue(job));
    assign(from, job);
  };
}

function assignUnique(from: ServerConnection, job: ServerJob): void {
  from.sendJoined('JOB_ASSIGN_UNIQ', `${job.handle}\0${job.queue.name}\0${job.unique}\0`, job.payload);
}

/** Like gearmand, sends a job without a reducer as for GRAB_JOB_UNIQ. */
function assignAll(from: ServerConnection, job: ServerJob): void {
  if (job.reducer === '') {
    assignUnique(from, job);
  } else {
    const { handle, queue, unique, reducer, payload } = job;
    from.sendJoined('JOB_ASSIGN_ALL', `${handle}\0${queue.name}\0${unique}\0${reducer}\0`, payload);
  }
}

/** Wraps a handler that is called only for jobs that run on the same connection. */
function ofRunningJob(
  handle: (from: ServerConnection, packet: Packet, job: ServerJob, server: ServerState) => void,
): PacketHandler {
  return (from, packet, server) => {
    const job = server.queue.job(packet.key('handle'));
    if (job?.worker === from) handle(from, packet, job, server);
    else from.send('ERROR', 'JOB_NOT_FOUND', 'Job given in work result not found');
  };
}

function numberOrZero(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}
