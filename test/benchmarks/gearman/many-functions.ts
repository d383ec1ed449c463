import { Admin } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../../fixtures/gearmand.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { compare, figureOf, ratioOf, ratioRow, rowsOf, type Unit } from '../comparison.ts';
import { distributionOf } from '../distribution.ts';
import { untilOffered } from '../offered.ts';
import { Program } from '../program.ts';
import { LIBGEARMAN, OURS, PERL, prepareLibraries } from './library-commands.ts';

const FUNCTIONS = 10_000;

/** Maximum stall of the event loop, in milliseconds. */
const STALL_BAR = 20;

/** Libraries that can deregister many functions on one connection. */
const CAPABLE: ReadonlySet<string> = new Set([LIBGEARMAN, OURS, PERL, 'gearman', 'gearmanode']);

/** Libraries without an event loop. */
const BLOCKING: ReadonlySet<string> = new Set([LIBGEARMAN, PERL]);

const MILLISECONDS: Unit = { name: 'ms', digits: 0 };

/** Measures how long a worker takes to register and deregister very many functions with gearmand. */
export const manyFunctions: Benchmark = { name: 'many-functions', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const { signal, after } = context;
  const libraries = (await prepareLibraries(context)).filter(({ name }) => CAPABLE.has(name));
  const server = await startGearmand('--threads=1');
  after(() => server.stop());
  const admin = new Admin({ host: '127.0.0.1', port: server.port });
  after(() => admin.close());

  const time = async (program: Program, order: 'register' | 'unregister'): Promise<number> => {
    const offered = order === 'register' ? FUNCTIONS : 0;
    const begin = performance.now();
    await program.ask(`${order} ${FUNCTIONS}`);
    await untilOffered(admin, ({ size }) => size === offered, signal);
    return performance.now() - begin;
  };
  const contenders = libraries.map(({ name, command }) => {
    const program = Program.start(command('functions', '127.0.0.1', server.port), context);
    const sample = async () => {
      const register = await time(program, 'register');
      const unregister = await time(program, 'unregister');
      const stall = BLOCKING.has(name) ? Number.NaN : Number(await program.ask('stall'));
      return { register, unregister, stall };
    };
    return { name, sample };
  });

  const samples = await compare(contenders, context);
  const both = figureOf(samples, ({ register, unregister }) => register + unregister);
  const withEventLoop = new Map([...samples].filter(([name]) => !BLOCKING.has(name)));
  const stalls = figureOf(withEventLoop, ({ stall }) => stall);
  const { max } = distributionOf(stalls.get(OURS) ?? []);
  const what = `${FUNCTIONS} functions`;
  return [
    ...rowsOf(
      `${what}, registered`,
      MILLISECONDS,
      figureOf(samples, ({ register }) => register),
    ),
    ...rowsOf(
      `${what}, unregistered`,
      MILLISECONDS,
      figureOf(samples, ({ unregister }) => unregister),
    ),
    ratioRow(
      `Ours against libgearman, ${what} registered and unregistered`,
      ratioOf(both, OURS, LIBGEARMAN),
      { atMost: 1.2 },
    ),
    ...rowsOf(`${what}, longest stall of the event loop`, MILLISECONDS, stalls),
    {
      what: '**Ours, longest stall of all rounds**',
      result: `${max.toFixed(1)} ms`,
      bar: { limit: `≤ ${STALL_BAR} ms`, met: max <= STALL_BAR },
    },
  ];
}
