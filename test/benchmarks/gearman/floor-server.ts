/**
 * Smallest job server on plain `node:net`, for one function, one worker and one client. It has constant packets, no
 * queue and no checks, and shows how fast a job server on Node can be. Responds to each line with its port.
 */
import net, { type AddressInfo, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Capacity, which exceeds the number of jobs in flight. */
const HANDLES = 1024;

/** Digits of a handle's number, after `H:`. */
const DIGITS = 4;

const PAYLOAD = Buffer.alloc(64, 'x');

const NOOP = packet(6);
const NO_JOB = packet(10);
const CREATED = perHandle((handle) => packet(8, handle));
const COMPLETED = perHandle((handle) => packet(13, `${handle}\0`, PAYLOAD));

let assigned: Buffer[] = [];
let worker: Socket | undefined;
let client: Socket | undefined;
let isAsleep = false;
/** Numbers of the last submitted and the last assigned job. */
let [submitted, grabbed] = [0, 0];

const server = net.createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => {});
  let held: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    const bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
    held = bytes.subarray(onChunk(socket, bytes));
  });
});
server.listen(0, '127.0.0.1');
for await (const _ of createInterface(process.stdin)) console.log((server.address() as AddressInfo).port);
process.exit();

/** Handles the packets of a chunk, and writes once to each peer. Returns the offset after the last complete packet. */
function onChunk(socket: Socket, chunk: Buffer): number {
  const toClient: Buffer[] = [];
  const toWorker: Buffer[] = [];
  let at = 0;
  for (let end = endOf(chunk, at); end <= chunk.length; end = endOf(chunk, at)) {
    switch (chunk.readUInt32BE(at + 4)) {
      case 1: // CAN_DO
        worker = socket;
        assigned = assignments(chunk.toString('latin1', at + 12, end));
        break;
      case 4: // PRE_SLEEP
        if (grabbed < submitted) toWorker.push(NOOP);
        else isAsleep = true;
        break;
      case 7: // SUBMIT_JOB
        client = socket;
        if (isAsleep) toWorker.push(NOOP);
        isAsleep = false;
        toClient.push(CREATED[submitted % HANDLES] as Buffer);
        submitted += 1;
        break;
      case 30: // GRAB_JOB_UNIQ
        toWorker.push(grabbed < submitted ? (assigned[grabbed % HANDLES] as Buffer) : NO_JOB);
        if (grabbed < submitted) grabbed += 1;
        break;
      case 13: // WORK_COMPLETE
        toClient.push(COMPLETED[Number(chunk.toString('latin1', at + 14, at + 14 + DIGITS))] as Buffer);
        break;
      default:
    }
    at = end;
  }
  if (toWorker.length > 0)
    worker?.write(toWorker.length > 1 ? Buffer.concat(toWorker) : (toWorker[0] as Buffer));
  if (toClient.length > 0)
    client?.write(toClient.length > 1 ? Buffer.concat(toClient) : (toClient[0] as Buffer));
  return at;
}

function endOf(chunk: Buffer, at: number): number {
  return chunk.length - at < 12 ? Number.POSITIVE_INFINITY : at + 12 + chunk.readUInt32BE(at + 8);
}

function assignments(functionName: string): Buffer[] {
  return perHandle((handle) => packet(31, `${handle}\0${functionName}\0\0`, PAYLOAD));
}

function perHandle(make: (handle: string) => Buffer): Buffer[] {
  return Array.from({ length: HANDLES }, (_, number) => make(`H:${String(number).padStart(DIGITS, '0')}`));
}

function packet(type: number, text = '', payload = Buffer.alloc(0)): Buffer {
  const header = Buffer.from('\0RES\0\0\0\0\0\0\0\0', 'latin1');
  header.writeUInt32BE(type, 4);
  header.writeUInt32BE(text.length + payload.length, 8);
  return Buffer.concat([header, Buffer.from(text, 'latin1'), payload]);
}
