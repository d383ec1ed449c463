import { styleText } from 'node:util';
import { localTime } from '../logging/record-format.ts';
import { warn } from '../terms/command-error.ts';
import { formatAge } from '../terms/units.ts';

/** One record, with the keys of its JSON. */
export type ShownRecord = Readonly<Record<string, string | number | boolean | readonly string[] | null>>;

/** A column of a table. */
export interface Column {
  readonly heading: string;
  /** Key of the column's value. Default: the heading in lower case. */
  readonly key?: string;
  /** Formats a value. Default: the value unchanged. Not called for null or an empty value. */
  readonly format?: (value: string, record: ShownRecord) => string;
  /** Text for null or an empty value. Default: `-` */
  readonly empty?: string;
  /** Formats the value in fewer characters if the table is too wide. */
  readonly shorten?: (value: string, record: ShownRecord) => string;
  /**
   * If the table is too wide, the last `words` column wraps. If that is not enough, long columns go below the rows, the
   * last ones first.
   */
  readonly long?: 'words' | 'id';
  /** True to omit the column if it is empty in all rows. */
  readonly sparse?: true;
}

/** Width of a table that goes to a file or a pipe, in columns. */
const WIDTH = 100;

/** Minimum width of a column in which words wrap. */
const NARROWEST = 40;

/**
 * Prints records as JSON, or as a table with these columns.
 *
 * @param ifEmpty sentence in place of a table without rows, on standard error
 */
export async function printRecords(
  records: readonly ShownRecord[],
  columns: readonly Column[],
  json = false,
  ifEmpty = 'there is nothing to list',
): Promise<void> {
  if (json) {
    console.log(JSON.stringify(records, null, 2));
    return;
  }
  if (records.length === 0) {
    console.error(ifEmpty);
    return;
  }
  const width = process.stdout.columns ?? WIDTH;
  const [first = '', ...lines] = (await textTable(records, columns, width)).split('\n').map((line) => {
    const isCut = line.length > width;
    return isCut ? `${line.slice(0, width - 1)}…` : line;
  });
  console.log([styleText('bold', first), ...lines].join('\n'));
  if (lines.some((line) => line.endsWith('…') && line.length === width)) {
    warn(`lines are cut at ${width} columns; --json shows everything`);
  }
}

/**
 * Formats a table without borders, with headings in capitals, as nodepool's commands do. It exceeds the width only if
 * the short columns of a row are too long.
 */
export async function textTable(
  records: readonly ShownRecord[],
  allColumns: readonly Column[],
  width: number = WIDTH,
): Promise<string> {
  const columns = allColumns.filter(
    (column) => !column.sparse || records.some((record) => cell(column, record) !== '-'),
  );
  const whole = await layOut(records, columns);
  if (widthOf(whole) <= width) return whole;
  const short = columns.map((column) => (column.shorten ? { ...column, format: column.shorten } : column));
  let text = await layOut(records, short);
  const words = short.findLastIndex(({ long }) => long === 'words');
  if (words !== -1 && widthOf(text) > width) {
    const rest = width - widthOf(await layOut(records, short.toSpliced(words, 1))) - GAP;
    // No word is broken, such as a path.
    if (rest >= Math.max(NARROWEST, longestWord(records, short[words]))) {
      return await layOut(records, short, { [words]: { width: rest, wrapWord: true } });
    }
  }
  const below: Column[] = [];
  for (const column of columns.filter(({ long }) => long !== undefined).toReversed()) {
    if (widthOf(text) <= width) break;
    below.unshift(column);
    text = await layOut(
      records.map(withoutLineBreaks),
      short.filter(({ heading }) => below.every((one) => one.heading !== heading)),
    );
  }
  const [heading = '', ...rows] = text.split('\n');
  return [heading, ...rows.flatMap((row, index) => [row, ...linesBelow(records[index], below, width)])].join(
    '\n',
  );
}

/** Length of the longest word in a column. */
function longestWord(records: readonly ShownRecord[], column: Column | undefined): number {
  if (column === undefined) return 0;
  const words = records.flatMap((record) => cell(column, record).split(/\s+/));
  return words.reduce((longest, { length }) => Math.max(longest, length), 0);
}

/** Spaces between two columns. */
const GAP = 2;

function widthOf(text: string): number {
  return Math.max(...text.split('\n').map((line) => line.length));
}

async function layOut(
  records: readonly ShownRecord[],
  columns: readonly Column[],
  settings: Readonly<Record<number, { readonly width: number; readonly wrapWord: boolean }>> = {},
): Promise<string> {
  // Imported on demand, so that the daemon starts faster.
  const { getBorderCharacters, table } = await import('table');
  const rows = records.map((record) => columns.map((column) => cell(column, record)));
  return table([columns.map(({ heading }) => heading), ...rows], {
    border: getBorderCharacters('void'),
    columnDefault: { paddingLeft: 0, paddingRight: GAP },
    columns: settings,
    drawHorizontalLine: () => false,
  })
    .replaceAll(/(?<! ) +$/gm, '')
    .trimEnd();
}

function withoutLineBreaks(record: ShownRecord): ShownRecord {
  const entries = Object.entries(record).map(([key, value]) => {
    return [key, typeof value === 'string' ? value.replaceAll('\n', ' ') : value] as const;
  });
  return Object.fromEntries(entries);
}

/** Formats the long values of a record, each on lines of its own: `  error: no space left`. */
function linesBelow(record: ShownRecord = {}, columns: readonly Column[], width: number): readonly string[] {
  return columns.flatMap((column) => {
    const text = cell(column, withoutLineBreaks(record));
    return text === '-' ? [] : wrapped(`  ${column.heading.toLowerCase()}: ${text}`, width);
  });
}

/** Wraps a line between words, and indents later lines more. */
function wrapped(text: string, width: number): readonly string[] {
  if (text.length <= width) return [text];
  const indentation = text.search(/\S/);
  const space = text.lastIndexOf(' ', width);
  const slash = text.lastIndexOf('/', width - 1) + 1; // the place where a path that is longer than a line is easiest to read
  const end = [space, slash].find((place) => place > indentation) ?? width;
  return [text.slice(0, end), ...wrapped(`    ${text.slice(end).trimStart()}`, width)];
}

/** Maximum number of lines of a value in a table, because `table` takes 40 s for 5,000. */
const MAX_LINES = 40;

function cell(
  { heading, key = heading.toLowerCase(), format, empty = '-' }: Column,
  record: ShownRecord,
): string {
  const value = [record[key] ?? ''].flat().join(',');
  if (value === '') return empty;
  const text = format === undefined ? value : format(value, record);
  const lines = text.split('\n');
  const shown = lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES), '…'].join('\n') : text;
  return shown.replaceAll(/[^\P{Cc}\n]+/gu, ' '); // a cloud's name or an error may contain any control character
}

/** A column with the age of an ISO 8601 time. */
export function ageColumn(key: string): Column {
  return { heading: 'AGE', key, format: (time) => formatAge(Date.now() - Date.parse(time)) };
}

/** A column with the provider. It adds the image's name there if it differs from the disk image. */
export const PROVIDER_COLUMN: Column = {
  heading: 'PROVIDER',
  empty: 'builders',
  long: 'id',
  format: (provider, { diskimage, 'image-name': name }) =>
    name === diskimage ? provider : `${provider}/${String(name)}`,
};

/**
 * A column with an external-id. A wide table shortens it to `docs-….qcow2`, because another column has the image's id.
 */
export const EXTERNAL_ID: Column = {
  heading: 'EXTERNAL-ID',
  shorten: (externalId, { 'image-id': imageId }) =>
    typeof imageId === 'string' && imageId !== '' ? externalId.replace(imageId, '…') : externalId,
  long: 'id',
};

/** Formats an ISO 8601 time as local time, to the minute: `2026-05-01 14:02`. Other text is unchanged. */
export function formatTime(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : localTime(date).slice(0, 'YYYY-MM-DD HH:MM'.length);
}
