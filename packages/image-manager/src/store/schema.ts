import { StoreError } from '../errors.ts';

/** Version of the tables. A release that changes them increments it. */
export const SCHEMA_VERSION = 2;

/** The differences between the SQL of the two kinds of store. */
export interface Dialect {
  /** Prefix of each table's name. */
  readonly prefix: string;
  /** Type of an auto-increment key that never reuses a number. */
  readonly countingKey: string;
}

/** Returns the statements that create the tables. Times are milliseconds since 1970. */
export function tablesOf({ prefix, countingKey }: Dialect): string {
  return `
    create table ${prefix}settings (
      only_row integer primary key check (only_row = 1),
      schema_version integer not null,
      owner text not null,
      next_number bigint not null,
      -- number of the current leader; a leader with a lower number must not write
      term bigint not null
    );
    create table ${prefix}builds (
      id text primary key,
      diskimage text not null,
      state text not null,
      configuration text not null,
      reason text not null,
      requested_at bigint not null,
      ended_at bigint,
      withdrawn boolean not null,
      checksum text,
      error text
    );
    create table ${prefix}uploads (
      id text primary key,
      image_id text not null references ${prefix}builds (id) deferrable initially deferred,
      diskimage text not null,
      provider text not null,
      image_name text not null,
      state text not null,
      external_id text,
      reason text not null,
      requested_at bigint not null,
      ended_at bigint,
      leftovers boolean not null,
      seen boolean not null,
      error text
    );
    create index uploads_of_build on ${prefix}uploads (image_id);
    create table ${prefix}requests (
      number ${countingKey},
      -- JSON
      request text not null
    );
  `;
}

/** Returns the statements that upgrade the tables of an earlier release; empty if none are needed. */
export function upgradeOf(version: number, prefix: string): string {
  if (version >= SCHEMA_VERSION) return '';
  return `
    alter table ${prefix}builds add column checksum text;
    update ${prefix}settings set schema_version = ${SCHEMA_VERSION};
  `;
}

/** @throws StoreError `store-too-new` */
export function checkSchemaVersion(version: number, location: string): void {
  if (version <= SCHEMA_VERSION) return;
  throw new StoreError(
    'store-too-new',
    `${location} was written by a later release: its tables have version ${version}, ` +
      `but this release knows version ${SCHEMA_VERSION}; install the later release`,
  );
}
