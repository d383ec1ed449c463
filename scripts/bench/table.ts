import type { Measurement } from '../../test/benchmarks/benchmark.ts';
import { markdownTable, replaceSection } from '../markdown.ts';

/**
 * Returns the measurements as a Markdown table. Consecutive rows with the same words before a colon form a group under
 * a row with these words.
 */
export function resultTable(measurements: readonly Measurement[]): string {
  const parts = measurements.map(({ what }) => {
    const [, bold = '', group, rest = ''] = /^(\*\*)?(.+?): (.*)$/.exec(what) ?? [];
    return { group, rest: `${bold}${rest}` };
  });
  const rows = measurements.flatMap(({ what, result, bar }, index) => {
    const { group, rest } = parts[index] ?? {};
    const [continues, begins] = [parts[index - 1]?.group === group, parts[index + 1]?.group === group];
    const isGrouped = group !== undefined && (continues || begins);
    const limit = bar === undefined ? '' : `${bar.limit}${bar.met ? '' : ', **missed**'}`;
    const row = [(isGrouped ? rest : what) ?? '', result, limit];
    return isGrouped && !continues ? [[`*${group}*`, '', ''], row] : [row];
  });
  return markdownTable(['measured', 'result', 'bar'], rows);
}

/**
 * Returns a page in which `results` replace the previous results of a suite.
 *
 * @throws Error if the page does not contain the suite
 */
export function replaceResults(page: string, suite: string, results: string): string {
  return replaceSection(
    page,
    `<!-- results of ${suite}: written with --write -->`,
    '<!-- end of results -->',
    results,
  );
}
