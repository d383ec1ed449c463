// Only in test:all: it tests a benchmark.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startGearmand } from '../../fixtures/gearmand.ts';
import type { BenchmarkContext } from '../benchmark.ts';
import type { Command } from '../program.ts';
import { EchoPair } from './echo-pair.ts';
import { floor, libgearman, ours } from './library-commands.ts';

/** Creates a context that closes everything in reverse order at the end of the test. */
function contextOf(t: TestContext): BenchmarkContext {
  const closers: (() => unknown)[] = [];
  t.after(async () => {
    for (const close of closers.toReversed()) await close();
  });
  return { signal: t.signal, after: (close) => closers.push(close), progress: () => {} };
}

/** Runs the sources instead of the compiled packages. */
function onSources([file, ...args]: Command): Command {
  return file === process.execPath
    ? [file, '--conditions=@nodepool-builder/source', ...args]
    : [file, ...args];
}

for (const [name, prepare] of Object.entries({ libgearman, ours: () => ours, floor: () => floor })) {
  test(`the benchmark’s ${name} programs echo jobs through gearmand, one at a time and many`, async (t) => {
    const context = contextOf(t);
    const library = await prepare(context);
    const server = await startGearmand('--threads=1');
    context.after(() => server.stop());
    const address = { host: '127.0.0.1', port: server.port };
    for (const inFlight of library === floor ? [1] : [1, 64]) {
      const pair = new EchoPair(library, address, { inFlight, bytes: 64 }, context, onSources);
      const jobsPerSecond = await pair.jobsPerSecond();
      assert.ok(
        jobsPerSecond > 0 && Number.isFinite(jobsPerSecond),
        `${jobsPerSecond} with ${inFlight} in flight`,
      );
    }
  });
}
