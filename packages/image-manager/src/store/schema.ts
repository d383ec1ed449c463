import { StoreError } from '../errors.ts';

/** Which tables a store has: a later release that changes them counts on. */
export const SCHEMA_VERSION = 2;

/** What the two kinds of store write differently in the same tables. */
export interface Dialect {
  /** Before each table's name. */
  readonly prefix: string;
  /** The type of a key that counts up and gives no number twice. */
  readonly countingKey: string;
}

/** The statements that make the tables. Times are milliseconds since 1970. */
export function tablesOf({ prefix, countingKey }: Dialect): string {
  return `
    create table ${prefix}settings (
      only_row integer primary key check (only_row = 1),
      schema_version integer not null,
      owner text not null,
      next_number bigint not null,
      -- counts the leaders: one whose number has passed writes no more
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

/** Statements that migrate the tables of an earlier release; empty if none are needed. */
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
    `${location} was written by a later release: it has the tables of version ${version}, ` +
      `and this release knows those of version ${SCHEMA_VERSION}; install the later release`,
  );
}
