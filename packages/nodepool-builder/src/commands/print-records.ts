import { formatAge, textTable } from './text-table.ts';

/** One record, with the keys of its JSON. */
export type ShownRecord = Readonly<Record<string, string | boolean | null>>;

/** Columns: the key of the record by the heading. The key `age` stands for the time since `requested`. */
export type Columns = Readonly<Record<string, string>>;

/** Prints records as JSON, or as a table with these columns. */
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
