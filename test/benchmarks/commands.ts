import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { promisify } from 'node:util';
import { createSite } from '../fixtures/site.ts';
import type { Benchmark, BenchmarkContext, Measurement } from './benchmark.ts';
import { compare, ratioOf, ratioRow, rowsOf } from './comparison.ts';
import { NODEPOOL_BUILDER, UNBUILT } from './daemon.ts';

const ROUNDS = 20;

const NODE = 'Node.js alone, `node -e 0`';
const COMMANDER = 'a program that prints the help of one option with commander';
const VERSION = '`nodepool-builder --version`';
const HELP = '`nodepool-builder --help`';
const BUILD = '`nodepool-builder image-build`, until it has queried a job server';

/** Reference for `--help`: the least that such a program needs. */
const PROGRAM = `
import { Command } from 'commander';
await new Command('floor').option('-c, --config <file>', 'configuration file').parseAsync(['--help'], { from: 'user' });
`;

/** Compares the duration of short commands with plain Node.js and with a minimal program on the same library. */
export const commands: Benchmark = { name: 'commands', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, after } = context;
  const asked = new EventTarget();
  const server = createServer((socket) => {
    socket.on('error', () => {}); // the command may have disconnected
    socket.on('data', () => {
      asked.dispatchEvent(new Event('asked'));
      socket.write('.\n'); // no functions
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  after(() => promisify(server.close.bind(server))());
  const { port } = server.address() as AddressInfo;
  const site = await createSite(port, UNBUILT);
  after(() => site.remove());

  const untilEnd = async (...args: readonly string[]): Promise<number> => {
    const begin = performance.now();
    await promisify(execFile)(process.execPath, args, { signal, cwd: import.meta.dirname });
    return performance.now() - begin;
  };
  const untilAsked = async (): Promise<number> => {
    const first = once(asked, 'asked', { signal });
    const begin = performance.now();
    const args = [NODEPOOL_BUILDER, 'image-build', 'docs', '-c', site.config];
    const exited = once(spawn(process.execPath, args, { stdio: 'ignore' }), 'exit');
    await Promise.race([
      first,
      exited.then(() => Promise.reject(new Error('image-build ended without a request'))),
    ]);
    const time = performance.now() - begin;
    await exited;
    return time;
  };
  const samples = await compare(
    [
      { name: NODE, sample: () => untilEnd('-e', '0') },
      { name: COMMANDER, sample: () => untilEnd('--input-type=module', '-e', PROGRAM) },
      { name: VERSION, sample: () => untilEnd(NODEPOOL_BUILDER, '--version') },
      { name: HELP, sample: () => untilEnd(NODEPOOL_BUILDER, '--help') },
      { name: BUILD, sample: untilAsked },
    ],
    context,
    ROUNDS,
  );
  const ratio = (name: string, atMost: number): Measurement =>
    ratioRow(`${name}, against Node.js alone`, ratioOf(samples, name, NODE), { atMost });
  return [
    ...rowsOf('Commands', { name: 'ms', digits: 0 }, samples),
    ratio(VERSION, 2),
    ratio(HELP, 2),
    ratio(BUILD, 4),
  ];
}
