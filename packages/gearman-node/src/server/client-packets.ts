import { MAX_FUNCTION_NAME_BYTES } from '../argument-checks.ts';
import type { Packet } from '../codec/packet.ts';
import type { Journal } from '../journal/journal.ts';
import { LongTimer } from '../long-timer.ts';
import { type JobPriority, PRIORITIES, SUBMIT_PACKETS } from '../submit-packets.ts';
import type { JobSubmission } from './job-queue.ts';
import type { ServerJob } from './queue-model.ts';
import type { ServerConnection } from './server-connection.ts';
import type { PacketHandler, PacketHandlers, ServerState } from './server-state.ts';

/** Maximum length of a unique key in bytes. gearmand has the same limit and truncates the key to 63 bytes. */
const MAX_UNIQUE_BYTES = 64;

/** Maximum length of a client id in characters, as in gearmand. A longer one is truncated. */
const MAX_CLIENT_ID_LENGTH = 127;

/** Handlers of the packets that a client sends, and of the packets that any peer sends. */
export const CLIENT_PACKETS: PacketHandlers = {
  ...Object.fromEntries(
    PRIORITIES.flatMap((priority) => [
      [SUBMIT_PACKETS.foreground[priority], submit({ priority })],
      [SUBMIT_PACKETS.background[priority], submit({ priority, isBackground: true })],
    ]),
  ),
  SUBMIT_JOB_EPOCH: submit({ isBackground: true, due: (packet) => packet.number('epoch') * 1000 }),
  SUBMIT_JOB_SCHED: (from) =>
    from.send('ERROR', 'INVALID_COMMAND', 'Jobs by calendar are not supported; submit with SUBMIT_JOB_EPOCH'),
  SUBMIT_REDUCE_JOB: submit({ reducer: (packet) => packet.key('reducer') }),
  SUBMIT_REDUCE_JOB_BACKGROUND: submit({ isBackground: true, reducer: (packet) => packet.key('reducer') }),
  GET_STATUS: (from, packet, { queue }) => {
    from.send('STATUS_RES', packet.bytes('handle'), ...statusOf(queue.job(packet.key('handle'))));
  },
  GET_STATUS_UNIQUE: (from, packet, { queue }) => {
    const job = queue.jobByUnique(packet.key('unique'));
    from.send('STATUS_RES_UNIQUE', packet.bytes('unique'), ...statusOf(job), job?.clients.length ?? 0);
  },
  ECHO_REQ: (from, packet) => from.send('ECHO_RES', packet.bytes('data')),
  OPTION_REQ: (from, packet) => {
    if (packet.key('option') === 'exceptions') {
      from.wantsExceptions = true;
      from.send('OPTION_RES', 'exceptions');
    } else {
      from.send('ERROR', 'UNKNOWN_OPTION', 'Server does not recognize given option');
    }
  },
  SET_CLIENT_ID: (from, packet) => {
    from.clientId = packet.key('clientId').slice(0, MAX_CLIENT_ID_LENGTH) || '-';
  },
};

/** Differences between the packets that submit a job. */
interface SubmitVariant {
  /** Priority of the job. Default `normal`. */
  readonly priority?: JobPriority;
  /** True if the job runs in the background. Default false. */
  readonly isBackground?: boolean;
  /** Earliest start time of the job, in milliseconds since 1970. Default: immediately. */
  readonly due?: (packet: Packet) => number;
  /** Reads the reducer from the packet. Default: the job has no reducer. */
  readonly reducer?: (packet: Packet) => string;
}

function submit({ priority = 'normal', isBackground = false, due, reducer }: SubmitVariant): PacketHandler {
  return (from, packet, server) => {
    const { queue, permits } = server;
    const start = due?.(packet) ?? 0;
    const delay = due ? start - Date.now() : 0;
    const submission = {
      function: packet.key('function'),
      unique: packet.key('unique'),
      reducer: reducer?.(packet) ?? '',
      payload: compact(packet),
      priority,
      isBackground,
      isHeld: delay > 0,
    };
    const tooLarge = argumentTooLarge(submission);
    if (tooLarge !== undefined) {
      from.send('ERROR', 'ARGUMENT_TOO_LARGE', `${tooLarge} too large`);
      return;
    }
    if (!permits(from, 'submit', submission.function)) {
      from.send('ERROR', 'ACCESS_DENIED', 'Not allowed to submit jobs of this function');
      return;
    }
    if (queue.isDraining) {
      from.send('ERROR', 'QUEUE_ERROR', 'The job server is shutting down; submit the job to another one');
      return;
    }
    const submitted = queue.submit(from, submission);
    if (!submitted) {
      from.send('ERROR', 'QUEUE_ERROR', 'Job queue is full');
      return;
    }
    const { job, isNew } = submitted;
    if (isNew && submission.isHeld) job.timer = new LongTimer(delay, () => queue.release(job));
    if (isBackground && server.journal) {
      from.sendLater(journaled(from, job, isNew ? start : 0, server.journal, server));
    } else {
      from.sendJoined('JOB_CREATED', job.handle);
    }
  };
}

function argumentTooLarge({ function: name, unique, reducer = '' }: JobSubmission): string | undefined {
  if (name.length > MAX_FUNCTION_NAME_BYTES) return 'Function name';
  if (unique.length > MAX_UNIQUE_BYTES) return 'Unique value';
  if (reducer.length > MAX_FUNCTION_NAME_BYTES) return 'Reducer name';
  return undefined;
}

/**
 * Writes a job to the journal. Returns a function that replies to its client. A job that cannot be written is dropped.
 */
async function journaled(
  from: ServerConnection,
  job: ServerJob,
  due: number,
  journal: Journal,
  { queue }: ServerState,
): Promise<() => void> {
  if (!journal.has(job.handle)) {
    const { handle, unique, reducer, priority, payload } = job;
    journal.add({ handle, function: job.queue.name, unique, reducer, priority, due, payload });
  }
  try {
    await journal.synced();
    return () => from.sendJoined('JOB_CREATED', job.handle);
  } catch {
    if (queue.job(job.handle) === job && !job.worker && job.clients.length === 0) queue.finish(job);
    return () =>
      from.send(
        'ERROR',
        'QUEUE_ERROR',
        'The job cannot be stored; see the log of the job server for the reason',
      );
  }
}

/** The arguments of a status packet: known, running, numerator and denominator. */
function statusOf(
  job: ServerJob | undefined,
): [known: number, running: number, numerator: number, denominator: number] {
  return job ? [1, job.worker ? 1 : 0, job.numerator, job.denominator] : [0, 0, 0, 0];
}

/** The payload of a packet, copied if it would keep a much larger buffer in memory. */
function compact(packet: Packet): Buffer {
  const payload = packet.bytes('data');
  return payload.buffer.byteLength > 2 * payload.length ? Buffer.from(payload) : payload;
}

/** Queues the jobs that an earlier process left in the journal; a job with a start time waits for it. */
export function restoreJobs(journal: Journal, { queue }: ServerState): void {
  for (const { handle, due, ...submission } of journal.jobs) {
    const delay = due - Date.now();
    const job = queue.restore(handle, { ...submission, isBackground: true, isHeld: delay > 0 });
    if (delay > 0) job.timer = new LongTimer(delay, () => queue.release(job));
  }
}
