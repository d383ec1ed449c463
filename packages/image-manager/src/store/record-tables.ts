import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { StoreError } from '../errors.ts';
import { OWNER } from '../ownership.ts';
import type { Build, BuildState, Upload, UploadState } from '../records.ts';

/** A field of a record, in a store or in an export. */
export interface Column {
  /** Name in SQL: `requested_at` for `requestedAt`. */
  readonly name: string;
  readonly field: string;
  /** A `time` is in milliseconds since 1970. */
  readonly kind: 'text' | 'time' | 'flag';
  /** The field may be absent. */
  readonly optional: boolean;
  /** All values of a text, if they are fixed. */
  readonly oneOf?: readonly string[];
}

/** Describes the records of one type, for stores and exports. */
export interface RecordTable<T> {
  readonly name: 'builds' | 'uploads';
  readonly columns: readonly Column[];
  /** Validates a record. */
  readonly validate: ValidateFunction<T>;
}

/** A record as parameters for SQL. */
export type Row = Readonly<Record<string, string | number | null>>;

const AJV = new Ajv({ validateSchema: false });

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

/** Converts a record to parameters for SQL; a field that is absent becomes null. */
export function toRow<T extends object>(table: RecordTable<T>, record: T): Row {
  const fields = record as Readonly<Record<string, string | number | boolean | undefined>>;
  return Object.fromEntries(table.columns.map(({ name, field }) => [name, toSql(fields[field])]));
}

/** Reads and validates records from rows. Equal texts share one string, because many records have the same names. */
export class RowReader {
  readonly #location: string;
  readonly #texts = new Map<string, string>();

  /** @param location the store, for messages */
  constructor(location: string) {
    this.#location = location;
  }

  /**
   * One damaged record stops all reading: without it, the manager would delete its images as orphans.
   *
   * @throws StoreError `store-not-usable`
   */
  read<T extends object>(table: RecordTable<T>, row: Readonly<Record<string, unknown>>): T {
    const record: Record<string, unknown> = {};
    for (const { name, field, kind } of table.columns) {
      const value = row[name];
      if (value === null) continue;
      if (kind === 'flag') record[field] = Boolean(value);
      else record[field] = typeof value === 'string' ? this.#once(value) : value;
    }
    if (table.validate(record)) return record;
    const reason = `record "${String(row.id)}" in table ${table.name}: ${explain(table.validate.errors?.[0])}`;
    throw damaged(this.#location, reason);
  }

  #once(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }
}

/** Replaces NULs, which PostgreSQL rejects: an error message of a builder or a cloud may have some. */
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
  const timeSchema = { type: 'integer' };
  const schema = recordSchema(columns, ({ field }) => field, timeSchema);
  return { name, columns, validate: AJV.compile<T>(schema) };
}

/**
 * Makes the JSON Schema of a record.
 *
 * @param keyOf names the property of a column
 * @param timeSchema schema of a time
 */
export function recordSchema(
  columns: readonly Column[],
  keyOf: (column: Column) => string,
  timeSchema: object,
): object {
  const schemaOf = ({ kind, oneOf }: Column): object => {
    if (kind === 'flag') return { type: 'boolean' };
    if (kind === 'time') return timeSchema;
    return oneOf === undefined ? { type: 'string' } : { enum: oneOf };
  };
  return {
    type: 'object',
    required: columns.filter(({ optional }) => !optional).map(keyOf),
    additionalProperties: false,
    properties: Object.fromEntries(columns.map((column) => [keyOf(column), schemaOf(column)])),
  };
}

/** Formats a validation error for messages. */
export function explain(error: ErrorObject | undefined): string {
  const { instancePath = '', message = '', params = {}, keyword = '' } = error ?? {};
  const path = instancePath === '' ? '/' : instancePath;
  const detail = {
    additionalProperties: ` ("${params.additionalProperty}")`,
    enum: `: ${params.allowedValues}`,
    const: `: ${params.allowedValue}`,
  }[keyword];
  return `${path} ${message}${detail ?? ''}`;
}

/** The single row of table `settings`. */
export interface Settings {
  readonly owner: string;
  readonly next_number: number;
  readonly term: number;
}

const validateSettings = AJV.compile<Settings>({
  type: 'object',
  required: ['owner', 'next_number', 'term'],
  properties: {
    owner: { type: 'string', pattern: OWNER.source },
    next_number: { type: 'integer', minimum: 1 },
    term: { type: 'integer' },
  },
});

/**
 * Validates the row of settings.
 *
 * @param location the store, for messages
 * @throws StoreError `store-not-usable`
 */
export function readSettings(row: unknown, location: string): Settings {
  if (validateSettings(row)) return row;
  throw damaged(location, `table settings: ${explain(validateSettings.errors?.[0])}`);
}

function damaged(location: string, reason: string): StoreError {
  const remedy = 'correct it in the database, or import an export into a new store';
  return new StoreError('store-not-usable', `${location} is damaged: ${reason}; ${remedy}`);
}
