import { PRIORITIES } from '../submit-packets.ts';
import type { ServerJob } from './queue-model.ts';
import type { AdminReply, ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';

/** The version of this package, the same as in package.json. */
export const VERSION = '0.1.0';

/** Executes an admin command. */
type AdminCommand = (args: readonly string[], server: ServerState, from: ServerConnection) => AdminReply;

const DENIED = 'ERR ACCESS_DENIED Not+allowed+to+administer+this\r\n';

const UNKNOWN_SHOW = 'ERR UNKNOWN_SHOW_ARGUMENTS\r\n';

/** The supported commands of the admin text protocol, with gearmand's replies. */
const REPLIES: Readonly<Record<string, AdminCommand>> = {
  status: (_args, { queue }) =>
    list(queue.functions, ({ name, total, running, workers }) => [name, total, running, workers.size]),
  prioritystatus: (_args, { queue }) =>
    list(queue.functions, (each) => [
      each.name,
      ...PRIORITIES.map((priority) => each.waiting[priority].size),
      each.workers.size,
    ]),
  'show jobs': show(({ handle, retries, isBackground }) => [handle, retries, 0, isBackground ? 1 : 0]),
  'show unique jobs': show(({ unique }) => [unique]),
  show: (args) => (args.length > 0 ? UNKNOWN_SHOW : unknown('show')),
  workers: (_args, { connections }) => workerLines(connections),
  version: () => `OK ${VERSION}\n`,
  verbose: () => 'OK ERROR\n',
  getpid: () => `OK ${process.pid}\n`,
  maxqueue: ([name, ...limits], { queue, permits }, from) => {
    if (name === undefined) return incomplete('maxqueue');
    if (!permits(from, 'administer', name)) return DENIED;
    const numbers = limits.map((limit) => Math.max(Number(limit) || 0, 0));
    const queueOfName = queue.pin(name);
    PRIORITIES.forEach((priority, index) => {
      queueOfName.limits[priority] = numbers[limits.length === 1 ? 0 : index] ?? 0;
    });
    return 'OK\r\n';
  },
  create: () => incomplete('create'),
  'create function': ([name, ...rest], { queue, permits }, from) => {
    if (name === undefined || rest.length > 0) return incomplete('create');
    if (!permits(from, 'administer', name)) return DENIED;
    queue.pin(name);
    return 'OK\r\n';
  },
  drop: () => incomplete('drop'),
  'drop function': ([name, ...rest], { queue, permits }, from) => {
    if (name === undefined || rest.length > 0) return incomplete('drop');
    if (!permits(from, 'administer', name)) return DENIED;
    const queueOfName = queue.function(name);
    if (!queueOfName) return 'ERR function not found\r\n';
    return queue.drop(queueOfName)
      ? 'OK\r\n'
      : 'ERR there are still connected workers or executing clients\r\n';
  },
  cancel: (args) => (args.length > 1 ? 'ERR UNKNOWN_ERROR\r\n' : unknown('cancel')),
  'cancel job': ([handle, ...rest], { queue, permits, onCancel }, from) => {
    if (handle === undefined) return unknown('cancel');
    if (rest.length > 0) return 'ERR UNKNOWN_ERROR\r\n';
    const job = queue.job(handle);
    if (!job) return 'ERR UNKNOWN_JOB\r\n';
    if (!permits(from, 'administer', job.queue.name)) return DENIED;
    const warning = onCancel(job);
    for (const client of job.clients) {
      if (warning !== undefined) client.send('WORK_WARNING', job.handle, warning);
      client.send('WORK_FAIL', job.handle);
    }
    queue.finish(job);
    return 'OK\r\n';
  },
  shutdown: ([mode, ...rest], { onShutdown, permits }, from) => {
    if (!onShutdown) return unknown('shutdown');
    if (rest.length > 0 || (mode !== undefined && mode !== 'graceful')) return incomplete('shutdown');
    if (!permits(from, 'administer', '')) return DENIED;
    queueMicrotask(() => onShutdown(mode === 'graceful')); // runs after the reply, which close() would discard
    return 'OK\r\n';
  },
};

/** Executes one line of the admin text protocol. */
export function adminReply(line: string, from: ServerConnection, server: ServerState): AdminReply {
  const words = line.split(/\s+/).filter((word) => word !== '');
  for (const length of [3, 2, 1]) {
    const command = words.slice(0, length).join(' ').toLowerCase();
    const reply = Object.hasOwn(REPLIES, command) ? REPLIES[command] : undefined;
    if (reply && words.length >= length) return reply(words.slice(length), server, from);
  }
  return unknown(words[0] ?? '');
}

function unknown(command: string): string {
  return `ERR UNKNOWN_COMMAND Unknown+server+command+${encodeURIComponent(command)}\r\n`;
}

/** A list of all jobs; like gearmand, it accepts no argument. */
function show(fields: (job: ServerJob) => readonly (string | number)[]): AdminCommand {
  return (args, { queue }) => (args.length > 0 ? UNKNOWN_SHOW : list(queue.jobs, fields));
}

/** A list of tab-separated fields, one line for each item, that ends with a dot. */
function* list<T>(items: Iterable<T>, fields: (item: T) => readonly (string | number)[]): Iterable<string> {
  for (const item of items) yield `${fields(item).join('\t')}\n`;
  yield '.\n';
}

/** Yields the lines in parts, because a connection may offer any number of functions. */
function* workerLines(connections: Iterable<ServerConnection>): Iterable<string> {
  for (const { number, ip, clientId, functions } of connections) {
    yield `${number} ${ip} ${clientId} :`;
    for (const { name } of functions) yield ` ${name}`;
    yield '\n';
  }
  yield '.\n';
}

function incomplete(command: string): string {
  return `ERR INVALID_ARGUMENTS An+incomplete+set+of+arguments+was+sent+to+this+command+${command}\r\n`;
}
