import type { Measurement } from '../../test/benchmarks/benchmark.ts';

const BEGIN = '<!-- results: written by npm run bench -- --write -->';
const END = '<!-- end of results -->';

/** The measurements as a table in Markdown. */
export function resultTable(measurements: readonly Measurement[]): string {
  const rows = measurements.map(({ what, result, bar }) => [
    what,
    result,
    bar?.limit ?? '',
    bar === undefined ? '' : bar.met ? 'yes' : '**no**',
  ]);
  return [['measured', 'result', 'bar', 'met'], ['---', '---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}

/**
 * A page with `results` in place of those that it has.
 *
 * @throws Error if the page has no place for them
 */
export function replaceResults(page: string, results: string): string {
  const [before, rest] = halves(page, BEGIN);
  const [, after] = halves(rest, END);
  return `${before}${BEGIN}\n${results}\n${END}${after}`;
}

function halves(text: string, marker: string): [before: string, after: string] {
  const at = text.indexOf(marker);
  if (at === -1) throw new Error(`the page has no "${marker}" where it belongs`);
  return [text.slice(0, at), text.slice(at + marker.length)];
}
