import type { Measurement } from '../../test/benchmarks/benchmark.ts';
import { markdownTable, replaceSection } from '../markdown.ts';

/**
 * Returns the measurements as a table in Markdown. Consecutive rows with the same words before a colon are a group: a row of
 * its own has these words.
 */
export function resultTable(measurements: readonly Measurement[]): string {
  const groups = measurements.map(({ what }) => /^(.+?): /.exec(what)?.[1]);
  const rows = measurements.flatMap(({ what, result, bar }, index) => {
    const group = groups[index];
    const [continues, begins] = [groups[index - 1] === group, groups[index + 1] === group];
    const isGrouped = group !== undefined && (continues || begins);
    const row = [
      isGrouped ? what.slice(group.length + 2) : what,
      result,
      bar === undefined ? '' : `${bar.limit}${bar.met ? '' : ', **missed**'}`,
    ];
    return isGrouped && !continues ? [[`*${group}*`, '', ''], row] : [row];
  });
  return markdownTable(['measured', 'result', 'bar'], rows);
}

/**
 * Returns a page with `results` in place of the last ones of a suite.
 *
 * @throws Error if the page has no place for them
 */
export function replaceResults(page: string, suite: string, results: string): string {
  return replaceSection(
    page,
    `<!-- results of ${suite}: written with --write -->`,
    '<!-- end of results -->',
    results,
  );
}
