import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { ImageError } from '@nodepool-builder/image-builder';
import { errnoOf, KeyedQueue, LineSplitter, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';

/** Timeout of a command in milliseconds. */
const TIMEOUT = 10_000;

/** Commands by the path of the socket, because a QEMU serves one client at a time and rejects most others. */
const commands = new KeyedQueue();

/** Errors of connecting without a listening QEMU. */
const ABSENT: readonly unknown[] = ['ENOENT', 'ECONNREFUSED'];

/** Id of the command, which its reply repeats. */
const ID = 1;

/** A message from QEMU: a reply, an event, or the greeting. */
const MESSAGE = new JsonReader(
  objectOf({}, { id: { type: 'integer' }, return: {}, error: objectOf({ desc: TEXT }) }),
);

/**
 * Executes a command of a running QEMU (QEMU Machine Protocol), over a connection of its own.
 *
 * @param path path of QEMU's socket
 * @returns QEMU's return value, unchecked; undefined if no QEMU listens there
 * @throws ImageError `instance-failed` if QEMU rejects it, ends before it replies, or does not reply
 */
export async function executeQmp(
  path: string,
  command: string,
  args: Readonly<Record<string, unknown>> = {},
): Promise<unknown> {
  return await commands.run(path, {}, () => execute(path, command, args));
}

async function execute(
  path: string,
  command: string,
  args: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const socket = await connectTo(path);
  if (socket === undefined) return undefined;
  const late = AbortSignal.timeout(TIMEOUT);
  let reason = 'it has ended';
  try {
    addAbortSignal(late, socket);
    for (const request of [{ execute: 'qmp_capabilities' }, { execute: command, arguments: args, id: ID }]) {
      socket.write(`${JSON.stringify(request)}\n`);
    }
    const lines = new LineSplitter();
    for await (const chunk of socket) {
      for (const message of lines.push(chunk as Buffer).map((line) => MESSAGE.parse(line))) {
        if (message.error !== undefined) throw new Error(message.error.desc);
        if (message.id === ID) return message.return;
      }
    }
  } catch (error) {
    reason = late.aborted ? `it did not reply within ${TIMEOUT / 1_000} s` : (error as Error).message;
  }
  throw new ImageError(
    'instance-failed',
    `QEMU failed to execute "${command}": ${reason}; check the console log of the instance`,
  );
}

async function connectTo(path: string): Promise<Socket | undefined> {
  const socket = new Socket();
  socket.on('error', () => {}); // the reader also gets the error
  try {
    const directory = await open(dirname(path), 'r');
    try {
      // A socket's address is limited to 107 bytes, which a path may exceed.
      socket.connect(join('/proc/self/fd', `${directory.fd}`, basename(path)));
      await once(socket, 'connect');
    } finally {
      await directory.close();
    }
  } catch (error) {
    socket.destroy();
    if (ABSENT.includes(errnoOf(error))) return undefined;
    throw error;
  }
  return socket;
}
