/**
 * Measures what the project promises: `npm run bench -- [--write] [PART...]`. Prints a table of results;
 * --write puts it into docs/benchmarks.md. Fails if a benchmark cannot run, not if a bar is missed: that
 * depends on the machine, and the table says it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { appearance } from '../test/benchmarks/appearance.ts';
import type { Benchmark, Measurement } from '../test/benchmarks/benchmark.ts';
import { memory } from '../test/benchmarks/memory.ts';
import { roundTrips } from '../test/benchmarks/round-trips.ts';
import { startUp } from '../test/benchmarks/start-up.ts';
import { describeMachine } from './bench/machine.ts';
import { replaceResults, resultTable } from './bench/table.ts';

const BENCHMARKS: readonly Benchmark[] = [startUp, appearance, memory, roundTrips];
const PAGE = join(import.meta.dirname, '../docs/benchmarks.md');

// gearmand lies where Debian lets only root look for commands.
process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)));
}

try {
  const { values: options, positionals: parts } = parseArgs({
    options: { write: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  await bench(parts, options.write);
} catch (error) {
  const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error;
  console.error(`bench: ${reason instanceof Error ? reason.message : String(reason)}`);
  process.exitCode = 1;
}

async function bench(parts: readonly string[], write: boolean): Promise<void> {
  if (write && parts.length > 0) throw new Error('--write takes a run of all parts; leave the parts out');
  const chosen = parts.length === 0 ? BENCHMARKS : parts.map(benchmarkOf);
  const measurements: Measurement[] = [];
  for (const benchmark of chosen) measurements.push(...(await runOne(benchmark)));
  const results = `${await describeMachine()}:\n\n${resultTable(measurements)}`;
  console.log(`\n${results}`);
  if (write) await writeFile(PAGE, replaceResults(await readFile(PAGE, 'utf8'), results));
}

function benchmarkOf(part: string): Benchmark {
  const benchmark = BENCHMARKS.find(({ name }) => name === part);
  if (benchmark !== undefined) return benchmark;
  throw new Error(`there is no part "${part}"; there are ${BENCHMARKS.map(({ name }) => name).join(', ')}`);
}

/** Runs a benchmark and, whatever comes of it, closes all that it opened. */
async function runOne({ name, run }: Benchmark): Promise<Measurement[]> {
  const { signal } = interrupted;
  signal.throwIfAborted();
  console.log(`==> ${name}`);
  const opened: (() => Promise<unknown>)[] = [];
  try {
    return await run({
      signal,
      after: (close) => void opened.push(close),
      progress: (line) => console.log(`    ${line}`),
    });
  } finally {
    for (const close of opened.toReversed()) {
      await close().catch((error: unknown) => console.error(`bench: ${String(error)}`));
    }
  }
}
