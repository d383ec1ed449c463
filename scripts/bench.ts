/**
 * Measures the performance that the project promises: `npm run bench -- [--write | --profile] [PART...]`, and the same
 * for `bench:build`, `bench:gearman`, `bench:upload`, `bench:download`, `bench:manager` and `bench:web`. Prints a table
 * of results. --write puts the table into the suite's page, where it replaces the previous one. --profile shows where
 * each program spent its time, and keeps V8's profiles, which Chrome's developer tools show as flame graphs. Fails
 * after all parts have run if one of them could not run. A missed bar is not a failure, because bars depend on the
 * machine; the table shows it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Benchmark, Measurement } from '../test/benchmarks/benchmark.ts';
import { barChart } from './bench/chart.ts';
import { describeMachine } from './bench/machine.ts';
import { profileTables, recordProfiles } from './bench/profiles.ts';
import { runParts } from './bench/run-parts.ts';
import { SUITES, type Suite } from './bench/suites.ts';
import { replaceResults, resultTable } from './bench/table.ts';

// Debian has gearmand in /usr/sbin, which is only in root's PATH.
process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);

const PROFILES = resolve('.cache/profiles');

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)));
}

try {
  const { values: options, positionals } = parseArgs({
    options: {
      write: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const [name = '', ...parts] = positionals;
  const suite = SUITES[name];
  if (suite === undefined)
    throw new Error(`no suite "${name}"; choose one of: ${Object.keys(SUITES).join(', ')}`);
  if (options.write && options.profile)
    throw new Error('--profile slows programs down and cannot be combined with --write');
  if (options.write && parts.length > 0)
    throw new Error('--write needs all parts, because the page has one table');
  if (options.profile) await recordProfiles(PROFILES, process.env);
  await bench(name, suite, parts, options.write);
  if (options.profile) console.log(`\n${await profileTables(PROFILES)}\n\nThe profiles are in ${PROFILES}.`);
} catch (error) {
  const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error;
  console.error(`bench: ${reason instanceof Error ? reason.message : String(reason)}`);
  process.exitCode = 1;
}

async function bench(name: string, suite: Suite, parts: readonly string[], write: boolean): Promise<void> {
  if (write) replaceResults(await readFile(suite.page, 'utf8'), name, ''); // Fails early if the page does not contain the suite.
  const chosen = parts.length === 0 ? suite.benchmarks : parts.map((part) => benchmarkOf(suite, part));
  const measurements = await runParts(chosen, runOne, reportFailure, interrupted.signal);
  // A chart shows the figures of all candidates; the table contains the comparisons.
  const shown = measurements.filter(({ figure }) => suite.chart === undefined || figure === undefined);
  const results = `${await describeMachine()}:\n\n${resultTable(shown)}`;
  console.log(`\n${results}`);
  if (!write) return;
  await writeFile(suite.page, replaceResults(await readFile(suite.page, 'utf8'), name, results));
  const figures = measurements.flatMap(({ figure }) => figure ?? []);
  if (suite.chart !== undefined) await writeFile(suite.chart, barChart(figures));
}

function reportFailure(name: string, error: unknown): void {
  console.error(`bench: ${name} could not run: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

function benchmarkOf({ benchmarks }: Suite, part: string): Benchmark {
  const benchmark = benchmarks.find(({ name }) => name === part);
  if (benchmark !== undefined) return benchmark;
  throw new Error(`no part "${part}"; choose one of: ${benchmarks.map(({ name }) => name).join(', ')}`);
}

/** Runs a benchmark, then closes everything that it opened, even after a failure. */
async function runOne({ name, run }: Benchmark): Promise<Measurement[]> {
  const { signal } = interrupted;
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
