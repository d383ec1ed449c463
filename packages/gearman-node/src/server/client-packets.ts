import { MAX_FUNCTION_NAME_BYTES } from '../argument-checks.ts';
import type { Packet } from '../codec/packet.ts';
import { type JobPriority, PRIORITIES, SUBMIT_PACKETS } from '../submit-packets.ts';
import type { PacketHandler, PacketHandlers } from './packet-handler.ts';
import type { QueuedJob } from './queued-job.ts';
import type { ServerConnection } from './server-connection.ts';

/** As for gearmand, which then keeps but 63 of them. */
const MAX_UNIQUE_BYTES = 64;

/** What a server does with the packets of a client. */
export const CLIENT_PACKETS: PacketHandlers = {
  ...Object.fromEntries(
    PRIORITIES.flatMap((priority) => [
      [SUBMIT_PACKETS.foreground[priority], submit(priority, false)],
      [SUBMIT_PACKETS.background[priority], submit(priority, true)],
    ]),
  ),
  SUBMIT_JOB_EPOCH: (from, packet, server) => {
    const delay = packet.number('epoch') * 1000 - Date.now();
    submit('normal', true, delay)(from, packet, server);
  },
  GET_STATUS: (from, packet, { queue }) => {
    from.send('STATUS_RES', packet.bytes('handle'), ...statusOf(queue.job(packet.key('handle'))));
  },
  GET_STATUS_UNIQUE: (from, packet, { queue }) => {
    const job = queue.jobByUnique(packet.key('unique'));
    from.send('STATUS_RES_UNIQUE', packet.bytes('unique'), ...statusOf(job), job?.clients.length ?? 0);
  },
};

/** @param delay milliseconds until the job may start */
function submit(priority: JobPriority, isBackground: boolean, delay = 0): PacketHandler {
  return (from, packet, { queue, timers }) => {
    const submission = {
      function: packet.key('function'),
      unique: packet.key('unique'),
      payload: compact(packet),
      priority,
      isBackground,
      isHeld: delay > 0,
    };
    if (submission.function.length > MAX_FUNCTION_NAME_BYTES) {
      from.send('ERROR', 'ARGUMENT_TOO_LARGE', 'Function name too large');
      return;
    }
    if (submission.unique.length > MAX_UNIQUE_BYTES) {
      from.send('ERROR', 'ARGUMENT_TOO_LARGE', 'Unique value too large');
      return;
    }
    const submitted = queue.submit(from.peer, submission);
    if (!submitted) {
      from.send('ERROR', 'QUEUE_ERROR', 'Job queue is full');
      return;
    }
    const { job, isNew } = submitted;
    if (isNew && submission.isHeld) timers.start(job, delay, () => queue.release(job));
    from.send('JOB_CREATED', job.handle);
  };
}

/** Known, running, numerator and denominator, as a status packet has them. */
function statusOf(
  job: QueuedJob<ServerConnection> | undefined,
): [known: number, running: number, numerator: number, denominator: number] {
  return job ? [1, job.worker ? 1 : 0, job.numerator, job.denominator] : [0, 0, 0, 0];
}

/** The payload of a job that may wait for long: a small one does not keep the large buffer it came in. */
function compact(packet: Packet): Buffer {
  const payload = packet.bytes('data');
  return payload.buffer.byteLength > 2 * payload.length ? Buffer.from(payload) : payload;
}
