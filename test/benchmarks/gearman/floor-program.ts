/**
 * A client and a worker for jobs of 64 bytes, one in flight, on plain node:net. Packets are constants, every read is
 * treated as complete packets, and nothing is checked. No library on Node.js can need less time for a job.
 *
 *     floor-program.ts worker HOST PORT FUNCTION
 *     floor-program.ts client HOST PORT FUNCTION     order and response: see node-program.ts
 */
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

const BYTES = 64;
const HEADER = 12;
const [CAN_DO, PRE_SLEEP, NOOP, SUBMIT_JOB, WORK_COMPLETE, GRAB_JOB_UNIQ, JOB_ASSIGN_UNIQ] = [
  1, 4, 6, 7, 13, 30, 31,
];

const [role, host = '', port, functionName = ''] = process.argv.slice(2);
let onPacket: (type: number, body: Buffer) => void;
const buffer = Buffer.allocUnsafe(64 * 1024);
const callback = (length: number): boolean => {
  for (let at = 0; at < length; ) {
    const end = at + HEADER + buffer.readUInt32BE(at + 8);
    onPacket(buffer.readUInt32BE(at + 4), buffer.subarray(at + HEADER, end));
    at = end;
  }
  return true;
};
const socket = connect({ host, port: Number(port), noDelay: true, onread: { buffer, callback } });
if (role === 'worker') work();
else submit();

function work(): void {
  const [grab, sleep] = [packet(GRAB_JOB_UNIQ), packet(PRE_SLEEP)];
  socket.write(Buffer.concat([packet(CAN_DO, functionName), sleep]));
  onPacket = (type, body) => {
    if (type === NOOP) socket.write(grab);
    if (type !== JOB_ASSIGN_UNIQ) return;
    const result = `${body.toString('latin1', 0, body.indexOf(0) + 1)}${body.toString('latin1', body.length - BYTES)}`;
    socket.write(Buffer.concat([packet(WORK_COMPLETE, result), sleep]));
  };
}

function submit(): void {
  const job = packet(SUBMIT_JOB, `${functionName}\0\0${'x'.repeat(BYTES)}`);
  let [jobs, begin, deadline] = [0, 0, 0];
  onPacket = (type) => {
    if (type !== WORK_COMPLETE) return;
    jobs += 1;
    if (performance.now() < deadline) socket.write(job);
    else console.log(`${jobs} ${(performance.now() - begin) / 1000}`);
  };
  createInterface(process.stdin).on('line', (order) => {
    [jobs, begin] = [0, performance.now()];
    deadline = begin + Number(order.split(' ')[2]);
    socket.write(job);
  });
}

function packet(type: number, body = ''): Buffer {
  const bytes = Buffer.from(`\0REQ${'\0'.repeat(8)}${body}`, 'latin1');
  bytes.writeUInt32BE(type, 4);
  bytes.writeUInt32BE(body.length, 8);
  return bytes;
}
