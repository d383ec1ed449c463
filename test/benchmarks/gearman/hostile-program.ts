/**
 * Hostile peers of the job server, whose port is the argument. The input `start` connects them and `end` disconnects
 * them. The response to both is their number.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setImmediate as turn } from 'node:timers/promises';
import { encodePacket } from '../../../packages/gearman-node/test/fixtures/encode-packet.ts';

const MIB = 2 ** 20;

/** Hostile peers with the same behaviour. */
interface Kind {
  readonly peers: number;
  /** Bytes that each peer sends as fast as the server accepts them. */
  readonly bytes: Buffer;
  /** Number of times it sends them. Default: until the end. */
  readonly times?: number;
  /** True if it reads what the server sends. */
  readonly reads: boolean;
}

const KINDS: readonly Kind[] = [
  { peers: 10, bytes: repeated(500, () => job(64)), times: 60, reads: true },
  { peers: 10, bytes: repeated(500, () => job(64)), times: 60, reads: false },
  { peers: 20, bytes: repeated(500, () => encodePacket('REQ', 'ECHO_REQ', Buffer.alloc(64))), reads: false },
  { peers: 5, bytes: job(MIB), times: 10, reads: true },
  { peers: 50, bytes: job(MIB).subarray(0, MIB / 2), times: 1, reads: false },
  { peers: 2, bytes: repeated(50_000, longFunction), times: 1, reads: true },
  { peers: 10, bytes: Buffer.from('show jobs\n'.repeat(1000)), reads: true },
  { peers: 10, bytes: Buffer.from('show unique jobs\nstatus\n'.repeat(500)), reads: false },
  { peers: 10, bytes: Buffer.from('workers\nversion\nno such command\n'.repeat(500)), reads: true },
  { peers: 200, bytes: repeated(100, () => encodePacket('REQ', 'GRAB_JOB')), reads: true },
];

function repeated(count: number, packet: (index: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, index) => packet(index)));
}

function job(bytes: number): Buffer {
  return encodePacket('REQ', 'SUBMIT_JOB', 'hostile', '', Buffer.alloc(bytes, 'x'));
}

function longFunction(index: number): Buffer {
  return encodePacket('REQ', 'CAN_DO', `${'long'.repeat(100)}${index}`);
}

async function connectTo(port: number, reads: boolean): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {}); // the server disconnects some of them
  if (reads) socket.resume();
  await once(socket, 'connect');
  return socket;
}

async function attack(socket: Socket, { bytes, times = Number.POSITIVE_INFINITY }: Kind): Promise<void> {
  for (let time = 0; time < times && !socket.destroyed; time += 1) {
    await new Promise((resolve) => socket.write(bytes, resolve));
    await turn(); // lets the other peers run if the server is fast
  }
}

const port = Number(process.argv[2]);
let sockets: Socket[] = [];
for await (const order of createInterface(process.stdin)) {
  if (order === 'start') {
    const kinds = KINDS.flatMap((kind) => Array.from({ length: kind.peers }, () => kind));
    sockets = await Promise.all(kinds.map(({ reads }) => connectTo(port, reads)));
    for (const [index, kind] of kinds.entries()) void attack(sockets[index] as Socket, kind); // never rejects
  } else {
    for (const socket of sockets) socket.destroy();
  }
  console.log(sockets.length);
}
