import { formatAge, textTable } from './text-table.ts';

/** One record as the commands show it: the keys of its JSON. */
export type ShownRecord = Readonly<Record<string, string | boolean | null>>;

/** A column: its heading, and the key of the record. `age` counts from the key `requested`. */
export type Columns = Readonly<Record<string, string>>;

/** Prints records, the oldest first: as JSON, or as a table with these columns. */
export async function printRecords(
  records: readonly ShownRecord[],
  columns: Columns,
  json: boolean,
): Promise<void> {
  if (json) {
    console.log(JSON.stringify(records, null, 2));
    return;
  }
  const rows = records.map((record) => Object.values(columns).map((key) => cell(record, key)));
  console.log(await textTable(Object.keys(columns), rows));
}

function cell(record: ShownRecord, key: string): string {
  const value = record[key === 'age' ? 'requested' : key];
  if (value === null || value === undefined || value === '') return '-';
  return key === 'age' ? formatAge(Math.max(0, Date.now() - Date.parse(String(value)))) : String(value);
}
