import type { Measurement } from '../../test/benchmarks/benchmark.ts';
import { markdownTable, replaceSection } from '../markdown.ts';

const END = '<!-- end of results -->';

/** Returns the measurements as a table in Markdown. */
export function resultTable(measurements: readonly Measurement[]): string {
  const rows = measurements.map(({ what, result, bar }) => [
    what,
    result,
    bar?.limit ?? '',
    bar === undefined ? '' : bar.met ? 'yes' : '**no**',
  ]);
  return markdownTable(['measured', 'result', 'bar', 'met'], rows);
}

/**
 * Returns a page with `results` in place of its own.
 *
 * @param parts of the suite that were measured by themselves, and have a table of their own; none for the whole suite
 * @throws Error if the page has no place for them
 */
export function replaceResults(page: string, results: string, parts: readonly string[] = []): string {
  const begin = `<!-- ${['results', ...parts].join(' ')}: written with --write -->`;
  return replaceSection(page, begin, END, results);
}
