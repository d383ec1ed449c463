import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import type { BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { distributionOf } from '../distribution.ts';
import { megabytes } from '../peak-memory.ts';
import { Program } from '../program.ts';
import type { BlockOrder } from './block-client.ts';
import { type BlockSummary, DISK_LENGTH, sparseDisks } from './sparse-disk.ts';

/** A cloud that receives the blocks of a disk one by one. */
export interface BlockCloud {
  /** Text after `8 GiB to` in the table: `EBS direct`. */
  readonly name: string;
  /** Name of our package: `@nodepool-builder/provider-aws`. */
  readonly provider: string;
  readonly blockSize: number;
  /** Number of concurrent requests. */
  readonly concurrency: number;
  /** Entry of `providers`, without name and images. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** Environment variables of our process. */
  readonly environment: Readonly<Record<string, string>>;
  /** True if the second build of an image sends only blocks that have changed. */
  readonly hasDeltas: boolean;
  /** Prepares the target of the minimal client. Returns its server and the requests for blocks. */
  prepare(blocks: readonly BlockSummary[]): Promise<Pick<BlockOrder, 'address' | 'awsKey' | 'blocks'>>;
  /** Responds to `received` with the number of block bytes received since the last such line. */
  readonly double: Program;
}

const BARE = 'a bare HTTP client, same blocks, same parallelism';
const ROUNDS = 5;
const MEMORY_BAR = 200e6;
/** The same values as in the command `nodepool-builder`. */
const HEAP_FLAGS = ['--max-semi-space-size=1', '--heap-growing-percent=30'];

const SECONDS: Unit = { name: 's', digits: 2 };

/** Measures uploads of two builds of a sparse disk: duration, data sent, and memory. */
export async function measureBlockUpload(
  cloud: BlockCloud,
  context: BenchmarkContext,
): Promise<Measurement[]> {
  const { after } = context;
  const { first, second, blocks, changed } = await sparseDisks(context, cloud.blockSize);
  const directory = await mkdtemp(join(tmpdir(), 'bench-cloud-'));
  after(() => rm(directory, { recursive: true }));
  const [config, orderFile] = [join(directory, 'nodepool.yaml'), join(directory, 'order.json')];
  await writeFile(config, dump(configuration(cloud)));
  const program = (name: string, ...args: readonly string[]): Program =>
    Program.start(
      ['env', ...variables(cloud), process.execPath, ...HEAP_FLAGS, join(import.meta.dirname, name), ...args],
      context,
    );
  const bare = program('block-client.ts');
  const uploader = program('cloud-uploader.ts', config, join(directory, 'records'));

  const processors = {
    bare: new ProcessorTimes(bare, cloud.double),
    ours: new ProcessorTimes(uploader, cloud.double),
  };
  const received = async (): Promise<number> => Number(await cloud.double.ask('received'));
  let [peak, uploads] = [0, 0];
  const upload = async (path: string): Promise<number> => {
    const [seconds = 0, memory = 0] = await uploader.askNumbers(`${path} bench-${++uploads}`);
    peak = Math.max(peak, memory);
    return seconds;
  };
  const sent: number[] = [];
  const samples = await compare(
    [
      {
        name: BARE,
        sample: async () => {
          const { blockSize, concurrency } = cloud;
          const order: BlockOrder = { path: first, blockSize, concurrency, ...(await cloud.prepare(blocks)) };
          await writeFile(orderFile, JSON.stringify(order));
          const [seconds = 0] = await processors.bare.during(() => bare.askNumbers(orderFile));
          await received();
          return seconds;
        },
      },
      {
        name: `${cloud.provider}, until the image is ready`,
        sample: async () => {
          const seconds = await processors.ours.during(() => upload(first));
          sent.push(await received());
          await uploader.ask('delete'); // the next upload must not find a parent
          return seconds;
        },
      },
    ],
    context,
    ROUNDS,
  );
  const ours = `${cloud.provider}, until the image is ready`;
  const dataOf = (what: string, bytes: number, count: number, limit: number): Measurement => {
    const ratio = bytes / (count * cloud.blockSize);
    return {
      what: `**${what}**`,
      result: `${megabytes(bytes)}, × ${ratio.toFixed(3)}`,
      bar: { limit: `≤ × ${limit}`, met: ratio <= limit },
    };
  };
  const rows = [
    ...rowsOf(`${DISK_LENGTH} to ${cloud.name}`, SECONDS, samples),
    // A rate reads as in the issue tracker.
    { what: `Processor time of ${BARE}, and of the cloud`, result: processors.bare.medians() },
    { what: `Processor time of ${cloud.provider}, and of the cloud`, result: processors.ours.medians() },
    ratioRow(`Our rate against ${BARE}`, ratioOf(samples, BARE, ours), { atLeast: 0.8 }),
    dataOf('Data sent, against the non-zero blocks', Math.max(...sent), blocks.length, 1.02),
  ];
  if (cloud.hasDeltas) {
    await upload(first);
    await received();
    await upload(second);
    rows.push(
      dataOf('Data sent for a second build, against its changed blocks', await received(), changed, 1.05),
    );
  }
  rows.push({
    what: `**Peak memory of the process that uploads to ${cloud.name}**`,
    result: megabytes(peak),
    bar: { limit: `< ${megabytes(MEMORY_BAR)}`, met: peak < MEMORY_BAR },
  });
  return rows;
}

/** Processor time of a client and of its cloud, which share the processors. */
class ProcessorTimes {
  readonly #programs: readonly Program[];
  readonly #rounds: number[][] = [];

  constructor(...programs: readonly Program[]) {
    this.#programs = programs;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    const before = await this.#now();
    const result = await work();
    this.#rounds.push((await this.#now()).map((seconds, index) => seconds - (before[index] ?? 0)));
    return result;
  }

  /** Formats the times of the rounds: `1.92 s + 2.10 s`. */
  medians(): string {
    return this.#programs
      .map((_, index) => distributionOf(this.#rounds.map((round) => round[index] ?? 0)).median)
      .map((seconds) => `${seconds.toFixed(2)} s`)
      .join(' + ');
  }

  async #now(): Promise<number[]> {
    return await Promise.all(this.#programs.map((program) => program.processorTime()));
  }
}

function variables({ environment }: BlockCloud): string[] {
  return Object.entries(environment).map(([name, value]) => `${name}=${value}`);
}

function configuration({ entry }: BlockCloud): object {
  const images = [{ name: 'bench', diskimage: 'bench' }];
  return {
    'images-dir': 'images',
    diskimages: [{ name: 'bench', elements: ['base'] }],
    providers: [{ name: 'bench', 'image-type': 'raw', ...entry, images }],
  };
}
