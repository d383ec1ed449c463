import type { Figure } from '../../test/benchmarks/benchmark.ts';

const WIDTH = 800;
const ROW = 20;
const TITLE = 40;

/** Horizontal positions: start of the bars, and end of the longest spread line. */
const LEFT = 300;
const RIGHT = 700;

/** Name prefixes of this project's own bars. */
const OWN = '@nodepool-builder/';

/** Draws bars with their spread as an SVG image, with the groups stacked vertically. */
export function barChart(figures: readonly Figure[]): string {
  const groups = Map.groupBy(figures, ({ group }) => group);
  const parts: string[] = [];
  let y = 0;
  for (const [title, bars] of groups) {
    parts.push(text(10, y + TITLE - 12, title, 'font-weight="bold"'));
    y += TITLE;
    const longest = Math.max(...bars.map(({ max }) => max));
    const x = (value: number): number => LEFT + Math.round(((RIGHT - LEFT) * value) / longest);
    for (const bar of bars) {
      parts.push(...drawBar(bar, x, y));
      y += ROW;
    }
  }
  const height = y + ROW;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">`,
    '<title>Median and spread of each figure</title>',
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

function drawBar({ label, value, min, max }: Figure, x: (value: number) => number, y: number): string[] {
  const middle = y + ROW / 2;
  const fill = label.startsWith(OWN) ? '#2a6f4e' : '#9aa5b1';
  return [
    text(LEFT - 8, middle + 4, label, 'text-anchor="end"'),
    `<rect x="${LEFT}" y="${y + 3}" width="${x(value) - LEFT}" height="${ROW - 6}" fill="${fill}"/>`,
    `<path d="M${x(min)} ${middle}H${x(max)}" stroke="black"/>`,
    text(x(max) + 6, middle + 4, value.toLocaleString('en-US', { maximumSignificantDigits: 3 })),
  ];
}

function text(x: number, y: number, content: string, ...attributes: readonly string[]): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<${['text', `x="${x}"`, `y="${y}"`, ...attributes].join(' ')}>${escaped}</text>`;
}
