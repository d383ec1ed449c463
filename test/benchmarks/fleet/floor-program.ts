/**
 * Lower bound of a fleet's registration time: sends the packets of fleet-program.ts as constants over plain sockets.
 * Takes the same arguments. Prints a line when the server has processed all packets, which a reply to a final
 * ECHO_REQ on each connection shows, and exits at the end of its input.
 */
import net from 'node:net';
import { createInterface } from 'node:readline';
import { BUILD_FUNCTIONS, imageFunctions } from './fleet-functions.ts';

const [port = 0, builders = 0, images = 0] = process.argv.slice(2).map(Number);
const CAN_DO = 1;
const ECHO_REQ = 16;

const connections = Array.from({ length: builders }, (_, builder) => [
  packets(BUILD_FUNCTIONS),
  packets(imageFunctions(builder, images)),
]).flat();
for await (const _ of createInterface(process.stdin)) {
  await Promise.all(connections.map(untilProcessed));
  console.log('processed');
}
process.exit();

function packets(names: readonly string[]): Buffer {
  return Buffer.concat([...names.map((name) => request(CAN_DO, name)), request(ECHO_REQ, 'end')]);
}

function request(type: number, data: string): Buffer {
  const header = Buffer.from('\0REQ\0\0\0\0\0\0\0\0', 'latin1');
  header.writeUInt32BE(type, 4);
  header.writeUInt32BE(data.length, 8);
  return Buffer.concat([header, Buffer.from(data)]);
}

/** gearmand may reset some connections; then all its packets are sent again, as a worker does. */
async function untilProcessed(bytes: Buffer): Promise<void> {
  const isProcessed = await new Promise<boolean>((resolve) => {
    const socket = net.connect({ host: '127.0.0.1', port });
    socket.once('close', () => resolve(false)).on('error', () => {}); // `close` follows
    socket.once('data', () => resolve(true)).write(bytes);
  });
  if (!isProcessed) await untilProcessed(bytes);
}
