import type { ObjectSchema } from '@nodepool-builder/image-builder';
import { errorMessage, objectOf, parseJson, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { StoreError } from '../errors.ts';
import { OWNER } from '../ownership.ts';
import {
  BUILD,
  type Build,
  type InvalidRequest,
  PAUSE,
  type Pause,
  REQUESTS,
  type Request,
  UPLOAD,
  type Upload,
} from '../records.ts';
import type { Dialect, Row } from './database.ts';

/** Version of the tables. A release that changes them increments it. */
export const SCHEMA_VERSION = 1;

/** Describes the records of one type, for stores and exports. */
export interface RecordTable<T> {
  readonly name: 'builds' | 'uploads' | 'pauses';
  readonly schema: ObjectSchema;
  /** Returns a valid record. @throws Error with the location and the reason */
  readonly check: (record: unknown) => T;
}

export const BUILDS: RecordTable<Build> = recordTable('builds', BUILD);
export const UPLOADS: RecordTable<Upload> = recordTable('uploads', UPLOAD);
export const PAUSES: RecordTable<Pause> = recordTable('pauses', PAUSE);

function recordTable<T>(name: RecordTable<T>['name'], schema: ObjectSchema): RecordTable<T> {
  const reader = new JsonReader({ ...schema, additionalProperties: false });
  return { name, schema, check: (record) => reader.check(record) as T };
}

/** Returns the statements that create the tables. */
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
    -- records, requests and documents are JSON or text, which readers validate
    create table ${prefix}builds (id text primary key, record text not null);
    create table ${prefix}uploads (
      id text primary key,
      image_id text not null references ${prefix}builds (id) deferrable initially deferred,
      record text not null
    );
    create index uploads_of_build on ${prefix}uploads (image_id);
    create table ${prefix}requests (
      number ${countingKey},
      request text not null
    );
    create table ${prefix}pauses (id text primary key, record text not null);
    -- bundles and package lists, which readers of the records do not need
    create table ${prefix}documents (
      image_id text not null references ${prefix}builds (id) on delete cascade,
      -- SHA-256 of the text: a build's attestation comes again with each upload
      digest text not null,
      upload_id text references ${prefix}uploads (id) on delete cascade,
      -- attestation, packages
      kind text not null,
      text text not null,
      primary key (image_id, digest)
    );
    create index documents_of_upload on ${prefix}documents (upload_id);
  `;
}

/** @throws StoreError `store-too-new` if a later release wrote the tables */
export function checkVersion(version: number, location: string): void {
  if (version === SCHEMA_VERSION) return;
  throw new StoreError(
    'store-too-new',
    `${location} was written by a later release: its tables have version ${version}, ` +
      `but this release supports version ${SCHEMA_VERSION}; install the later release`,
  );
}

/**
 * Returns a function that reads and validates records from rows. Equal texts share one string, because many records
 * contain the same names. A damaged record stops all reading, because without it, the manager would delete its images
 * as orphans: the function throws StoreError `store-not-usable`.
 *
 * @param location the store, for messages
 */
export function rowReader(location: string) {
  const texts = new Map<string, string>();
  const once = (text: string): string => {
    const known = texts.get(text) ?? text;
    texts.set(text, known);
    return known;
  };
  return <T extends object>(table: RecordTable<T>, { id, record }: Row): T => {
    try {
      const read = table.check(parseJson(String(record))) as Record<string, unknown>;
      if (read.id !== id) throw new Error(`its id is "${String(read.id)}"`);
      for (const [field, value] of Object.entries(read)) {
        if (typeof value === 'string') read[field] = once(value);
      }
      return read as T;
    } catch (error) {
      const place = `record "${String(id)}" in table ${table.name}`;
      throw damaged(location, `${place}: ${errorMessage(error)}`);
    }
  };
}

const SETTINGS = new JsonReader(
  objectOf({
    owner: { ...TEXT, pattern: OWNER.source },
    next_number: { type: 'integer', minimum: 1 },
    term: { type: 'integer' },
  }),
);

/** The single row of table `settings`. */
export type Settings = ReturnType<typeof SETTINGS.check>;

/**
 * Validates the row of settings.
 *
 * @param location the store, for messages
 * @throws StoreError `store-not-usable`
 */
export function checkSettings(row: unknown, location: string): Settings {
  try {
    return SETTINGS.check(row);
  } catch (error) {
    throw damaged(location, `table settings: ${errorMessage(error)}`);
  }
}

function damaged(location: string, reason: string): StoreError {
  const remedy = 'correct it in the database, or import an export into a new store';
  return new StoreError('store-not-usable', `${location} is damaged: ${reason}; ${remedy}`);
}

const REQUEST = new JsonReader(objectOf({ kind: TEXT }));

const READERS = new Map(Object.entries(REQUESTS).map(([kind, schema]) => [kind, new JsonReader(schema)]));

/** Reads a request from the store, which may come from a newer release. */
export function parseRequest(text: string): Request | InvalidRequest {
  try {
    const request = REQUEST.parse(text);
    const reader = READERS.get(request.kind);
    if (reader === undefined) {
      return { kind: 'invalid', reason: 'this release does not support it; update the manager' };
    }
    reader.check(request);
    return request as Request;
  } catch (error) {
    return { kind: 'invalid', reason: `${errorMessage(error)}; make the request again` };
  }
}
