import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Admin, Client, Worker } from '@nodepool-builder/gearman-node';
import { encodePacket } from '../../../packages/gearman-node/test/fixtures/encode-packet.ts';
import { type Benchmark, type BenchmarkContext, type Measurement, unlessAborted } from '../benchmark.ts';
import { formatNumber } from '../comparison.ts';
import { type Distribution, distributionOf } from '../distribution.ts';
import { Program } from '../program.ts';

/** Functions or jobs of each peer. */
const COUNT = 100_000;

/** Maximum stall in milliseconds. */
const STALL_BAR = 20;

/** Jobs that one peer queues while another one submits a single job. */
const QUEUED = 10_000;

/** Maximum delay of the single job, in milliseconds. */
const DELAY_BAR = 5;

/** Counted rounds; an earlier one warms up. */
const ROUNDS = 3;

const HOST = '127.0.0.1';

/** Measures stalls of the job server's event loop during long tasks, and the delay of a job next to a greedy peer. */
export const serverStalls: Benchmark = { name: 'server-stalls', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const program = [process.execPath, join(import.meta.dirname, 'job-server-program.ts')] as const;
  const [server, idle] = [Program.start(program, context), Program.start(program, context)];
  const floor = Program.start([process.execPath, join(import.meta.dirname, 'floor-map-program.ts')], context);
  const port = Number(await server.ask('port'));
  const rows: Measurement[] = [];
  const stalls = new Map<string, number[][]>();
  const record = (name: string, round: number, stall: number[]): void => {
    if (round > 0) stalls.set(name, [...(stalls.get(name) ?? []), stall]);
  };
  for (let round = 0; round <= ROUNDS; round += 1) {
    context.progress(`round ${round} of ${ROUNDS}`);
    const tasks = new LongTasks(port, context);
    for (const [name, task] of tasks.all) {
      await Promise.all([server.ask('stall'), idle.ask('stall')]);
      await task();
      record(name, round, await server.askNumbers('stall'));
      record(IDLE, round, await idle.askNumbers('stall'));
    }
    record(FLOOR, round, await floor.askNumbers(String(COUNT)));
  }
  for (const [name, samples] of stalls) {
    const bar = name === IDLE || name === FLOOR ? undefined : STALL_BAR;
    rows.push(stallRow(`Server, longest stall, ${formatNumber(COUNT, 0)} ${name}`, samples, bar));
  }
  return [...rows, await measureDelay(port, context)];
}

/** Name of the row of an idle process, which other programs on the machine stall as well. */
const IDLE = '(an idle Node process next to it)';

/** Name of the reference row: what Node itself needs for a table of this size. */
const FLOOR = 'records fill a bare Map';

/** Task that may keep a server from its other connections. */
class LongTasks {
  readonly #port: number;
  readonly #context: BenchmarkContext;
  #peer: Socket | undefined;
  #handles: readonly string[] = [];

  constructor(port: number, context: BenchmarkContext) {
    this.#port = port;
    this.#context = context;
  }

  /** In the order in which they must run. */
  readonly all: readonly (readonly [name: string, task: () => Promise<unknown>])[] = [
    ['functions are registered', () => this.#request((index) => encodePacket('REQ', 'CAN_DO', `f${index}`))],
    ['functions are listed by `status`', () => this.#until(COUNT)],
    ['functions lose their worker', () => this.#leave()],
    ['jobs are submitted', () => this.#submit()],
    ['jobs are cancelled', () => this.#cancel()],
    ['jobs are submitted again', () => this.#submit()],
    ['jobs lose their client', () => this.#leave()],
  ];

  /** Sends many packets at once, and waits until the server has handled them. */
  async #request(packet: (index: number) => Buffer): Promise<string> {
    this.#peer ??= connect({ host: HOST, port: this.#port });
    const packets = Array.from({ length: COUNT }, (_, index) => packet(index));
    const echo = encodePacket('REQ', 'ECHO_REQ', 'all handled');
    return await answered(this.#peer, Buffer.concat([...packets, echo]), 'all handled', this.#context);
  }

  async #submit(): Promise<void> {
    const created = await this.#request(() => encodePacket('REQ', 'SUBMIT_JOB', 'queued', '', 'payload'));
    this.#handles = created.match(/H:[^:]+:\d+/g) ?? [];
  }

  async #cancel(): Promise<void> {
    const operator = connect({ host: HOST, port: this.#port });
    const lines = this.#handles.map((handle) => `cancel job ${handle}\n`);
    await answered(operator, Buffer.from(`${lines.join('')}getpid\n`), /OK \d+\r?\n$/, this.#context);
    operator.destroy();
  }

  async #leave(): Promise<void> {
    this.#peer?.destroy();
    this.#peer = undefined;
    await this.#until(0);
  }

  /** Waits until the server knows this number of functions. */
  async #until(count: number): Promise<void> {
    const admin = new Admin({ host: HOST, port: this.#port });
    while ((await unlessAborted(admin.status(), this.#context.signal)).length !== count) await delay(5);
    await admin.close();
  }
}

/** Sends bytes. Returns the reply up to its end. */
async function answered(
  socket: Socket,
  bytes: Uint8Array,
  end: string | RegExp,
  { signal }: BenchmarkContext,
): Promise<string> {
  const chunks: string[] = [];
  const isEnd = (text: string): boolean => (typeof end === 'string' ? text.endsWith(end) : end.test(text));
  const { promise, resolve } = Promise.withResolvers<void>();
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk.toString('latin1'));
    if (isEnd(chunks.slice(-2).join(''))) resolve();
  };
  socket.on('data', onData);
  socket.write(bytes);
  await unlessAborted(promise, signal);
  socket.off('data', onData);
  return chunks.join('');
}

/** Submits a job right after another peer has queued very many jobs of another function, and does so without them. */
async function measureDelay(port: number, context: BenchmarkContext): Promise<Measurement> {
  const servers = [{ host: HOST, port }];
  const worker = new Worker({ servers });
  worker.add('single', () => '');
  context.after(() => worker.close());
  const client = new Client({ servers });
  context.after(() => client.close());
  const greedy = encodePacket('REQ', 'SUBMIT_JOB_BG', 'greedy', '', Buffer.alloc(64, 'x'));
  const burst = Buffer.concat(Array.from({ length: QUEUED }, () => greedy));
  const time = async (): Promise<number> => {
    const begin = performance.now();
    await client.submit('single');
    return performance.now() - begin;
  };
  await time();
  const delays: number[] = [];
  for (let round = -1; round < 3 * ROUNDS; round += 1) {
    const alone: number[] = [];
    while (alone.length < 20) alone.push(await time());
    const peer = connect({ host: HOST, port }).resume();
    await once(peer, 'connect');
    peer.write(burst);
    let longest = 0;
    while (peer.bytesWritten < burst.length || longest === 0) longest = Math.max(longest, await time());
    if (round >= 0) delays.push(longest - distributionOf(alone).median);
    peer.destroy();
  }
  const distribution = distributionOf(delays);
  return {
    what: `Server, delay of a job while a peer queues ${formatNumber(QUEUED, 0)} jobs`,
    result: format(distribution),
    bar: { limit: `≤ ${DELAY_BAR} ms`, met: distribution.median <= DELAY_BAR },
  };
}

function stallRow(
  what: string,
  samples: readonly (readonly number[])[],
  bar: number | undefined,
): Measurement {
  const [byProcessor, byClock, garbage] = [0, 1, 2].map((index) =>
    distributionOf(samples.map((sample) => sample[index] ?? 0)),
  ) as [Distribution, Distribution, Distribution];
  const result = `${format(byProcessor)}; clock ${format(byClock)}; GC ${format(garbage)}`;
  if (bar === undefined) return { what, result };
  return { what, result, bar: { limit: `≤ ${bar} ms`, met: byProcessor.max <= bar } };
}

function format({ min, median, max }: Distribution): string {
  return `${formatNumber(median, 1)} ms (${formatNumber(min, 1)}–${formatNumber(max, 1)})`;
}
