import type { Build, BuildState, Upload, UploadState } from '../records.ts';

/** A field of a record, as a store and an export keep it. */
export interface Column {
  /** In SQL: `requested_at` for `requestedAt`. */
  readonly name: string;
  readonly field: string;
  /** A `time` is in milliseconds since 1970. */
  readonly kind: 'text' | 'time' | 'flag';
  /** The field may be absent. */
  readonly optional: boolean;
  /** All that a text may be, if that is known. */
  readonly oneOf?: readonly string[];
}

/** How records of one type are kept: stores and exports follow from it. */
export interface RecordTable<T> {
  readonly name: 'builds' | 'uploads';
  readonly columns: readonly Column[];
  /** Never set: tells which records the table is for. */
  readonly record?: T;
}

/** A record as SQL takes it. */
export type Row = Readonly<Record<string, string | number | null>>;

type ColumnKind = Pick<Column, 'kind'> & Partial<Pick<Column, 'optional' | 'oneOf'>>;

const TEXT: ColumnKind = { kind: 'text' };
const TIME: ColumnKind = { kind: 'time' };
const FLAG: ColumnKind = { kind: 'flag' };

const BUILD_STATES: Readonly<Record<BuildState, true>> = {
  building: true,
  ready: true,
  failed: true,
  deleting: true,
  deleted: true,
};
const UPLOAD_STATES: Readonly<Record<UploadState, true>> = {
  uploading: true,
  ready: true,
  failed: true,
  deleting: true,
  deleted: true,
};

/** The table of builds. */
export const BUILDS: RecordTable<Build> = recordTable<Build>('builds', {
  id: TEXT,
  diskimage: TEXT,
  state: { kind: 'text', oneOf: Object.keys(BUILD_STATES) },
  configuration: TEXT,
  reason: TEXT,
  requestedAt: TIME,
  endedAt: { kind: 'time', optional: true },
  withdrawn: FLAG,
  checksum: { kind: 'text', optional: true },
  error: { kind: 'text', optional: true },
});

/** The table of uploads. */
export const UPLOADS: RecordTable<Upload> = recordTable<Upload>('uploads', {
  id: TEXT,
  imageId: TEXT,
  diskimage: TEXT,
  provider: TEXT,
  imageName: TEXT,
  state: { kind: 'text', oneOf: Object.keys(UPLOAD_STATES) },
  externalId: { kind: 'text', optional: true },
  reason: TEXT,
  requestedAt: TIME,
  endedAt: { kind: 'time', optional: true },
  leftovers: FLAG,
  seen: FLAG,
  error: { kind: 'text', optional: true },
});

/** A record as SQL takes it; what is absent becomes null. */
export function toRow<T extends object>(table: RecordTable<T>, record: T): Row {
  const fields = record as Readonly<Record<string, string | number | boolean | undefined>>;
  return Object.fromEntries(table.columns.map(({ name, field }) => [name, toSql(fields[field])]));
}

/** Makes records of the rows that SQL gave. Texts that are equal are kept once: many records name the same. */
export class RowReader {
  readonly #texts = new Map<string, string>();

  read<T extends object>(table: RecordTable<T>, row: Readonly<Record<string, unknown>>): T {
    const record: Record<string, unknown> = {};
    for (const { name, field, kind } of table.columns) {
      const value = row[name];
      if (value === null) continue;
      if (kind === 'flag') record[field] = Boolean(value);
      else record[field] = typeof value === 'string' ? this.#once(value) : value;
    }
    return record as T;
  }

  #once(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }
}

/** PostgreSQL keeps no NUL in a text: what a builder or a cloud said must not keep a record from being written. */
function toSql(value: string | number | boolean | undefined): string | number | null {
  if (typeof value === 'string') return value.toWellFormed().replaceAll('\0', '\uFFFD');
  return value === undefined ? null : Number(value);
}

function recordTable<T>(
  name: RecordTable<T>['name'],
  kinds: Readonly<Record<keyof T & string, ColumnKind>>,
): RecordTable<T> {
  const columns = Object.entries<ColumnKind>(kinds).map(([field, kind]) => ({
    name: field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    field,
    optional: false,
    ...kind,
  }));
  return { name, columns };
}
