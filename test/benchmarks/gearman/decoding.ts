import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { type Contender, compare, figureOf, ratioOf, ratioRow, rowsOf } from '../comparison.ts';
import { distributionOf } from '../distribution.ts';
import { type Command, Program } from '../program.ts';
import { installPeers, NPM_PEERS, nodeLibrary, OURS, ours } from './library-commands.ts';
import { recordStream } from './recorded-stream.ts';

/** Minimum duration of a sample, which stops only at the end of the stream. */
const MILLISECONDS = 150;

/** Small packets per second. */
const BAR = 5e6;

/** This library fails where a chunk ends within the header of a packet. */
const UNFIT = 'gearmanode';

/** Decoded packets need new memory, so the reference copies the data too. */
const COPY = 'copying the bytes into new memory for each MiB';

/** Measures how fast workers decode packets of gearmand in chunks of 64 KiB, without a socket. */
export const decoding: Benchmark = { name: 'decoding', run };

interface Rate {
  readonly packets: number;
  readonly megabytes: number;
}

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  await installPeers(context);
  const directory = await mkdtemp(join(tmpdir(), 'bench-streams-'));
  context.after(() => rm(directory, { recursive: true }));
  const [small, large] = [join(directory, 'small'), join(directory, 'large')];
  await recordStream(small, { count: 5_000, bytes: 64 }, context);
  await recordStream(large, { count: 32, bytes: 2 ** 20 }, context);

  const peers = NPM_PEERS.filter((name) => name !== UNFIT).map((name) => nodeLibrary(name, name));
  const decoders = [ours, ...peers];
  const contender = (file: string, name: string, command: Command): Contender<Rate> => {
    const program = Program.start(command, context);
    const sample = async () => {
      const [packets = 0, bytes = 0, seconds = 0] = await program.askNumbers(`${file} ${MILLISECONDS}`);
      return { packets: packets / seconds, megabytes: bytes / seconds / 1e6 };
    };
    return { name, sample };
  };
  const contenders = (file: string) =>
    decoders.map(({ name, command }) => contender(file, name, command('decoder')));

  context.progress('small packets');
  const ofSmall = figureOf(await compare(contenders(small), context), ({ packets }) => packets);
  context.progress('large packets');
  const copier = contender(large, COPY, ours.command('copier'));
  const ofLarge = figureOf(
    await compare([copier, ...contenders(large)], context),
    ({ megabytes }) => megabytes,
  );
  const { median } = distributionOf(ofSmall.get(OURS) ?? []);
  return [
    ...rowsOf('Decoding, 64 B payloads', { name: 'packets/s', digits: 0 }, ofSmall),
    {
      what: '**Ours, packets of 64 B**',
      result: `${(median / 1e6).toFixed(2)} million/s`,
      bar: { limit: `≥ ${BAR / 1e6} million/s`, met: median >= BAR },
    },
    ...rowsOf('Decoding, 1 MiB payloads', { name: 'MB/s', digits: 0 }, ofLarge),
    ratioRow('Ours against copying into new memory, 1 MiB', ratioOf(ofLarge, OURS, COPY), { atLeast: 0.9 }),
  ];
}
