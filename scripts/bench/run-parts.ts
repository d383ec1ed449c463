import type { Benchmark, Measurement } from '../../test/benchmarks/benchmark.ts';

/**
 * Runs the parts of a suite one after the other. A part that fails gets an error row; the results of the other parts
 * are kept.
 *
 * @param run runs one part
 * @param report called with the name and the error of a part that failed
 * @throws the signal's reason
 */
export async function runParts(
  parts: readonly Benchmark[],
  run: (part: Benchmark) => Promise<readonly Measurement[]>,
  report: (name: string, error: unknown) => void,
  signal: AbortSignal,
): Promise<readonly Measurement[]> {
  const rows: Measurement[] = [];
  for (const part of parts) {
    signal.throwIfAborted();
    try {
      rows.push(...(await run(part)));
    } catch (error) {
      signal.throwIfAborted();
      report(part.name, error);
      rows.push({ what: `All of \`${part.name}\``, result: 'could not run' });
    }
  }
  return rows;
}
