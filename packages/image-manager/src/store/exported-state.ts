import type { SettingsSchema } from '@nodepool-builder/image-builder';
import { errorMessage, objectOf, parseImportedImageId, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { checkDocument, type ImageDocument } from '../documents.ts';
import { StoreError } from '../errors.ts';
import { buildKeyOf, isOwn, OWNER } from '../ownership.ts';
import type { StoredState } from './leadership.ts';
import type { StateStore } from './state-store.ts';
import { BUILDS, PAUSES, type RecordTable, UPLOADS } from './tables.ts';

/** A record in an export, with `requested-at` for `requestedAt` and times in ISO 8601. */
export type ExportedRecord = Readonly<Record<string, string | boolean>>;

/** The state as JSON, for a backup or for another store. Pending requests are left out. */
export interface ExportedState {
  readonly version: 1;
  readonly owner: string;
  readonly 'next-number': number;
  readonly builds: readonly ExportedRecord[];
  readonly uploads: readonly ExportedRecord[];
  readonly pauses?: readonly ExportedRecord[];
  /**
   * Exported documents. Absent from {@link exportState}, because together they need much memory; see
   * {@link exportDocuments}.
   */
  readonly documents?: readonly ExportedDocument[];
}

/** Exports a consistent snapshot of a store. Any process may call it at any time. */
export async function exportState(store: StateStore): Promise<ExportedState> {
  const { owner, nextNumber, builds, uploads, pauses } = await store.read();
  return {
    version: 1,
    owner,
    'next-number': nextNumber,
    builds: Array.from(builds.values(), (build) => toExport(BUILDS, build)),
    uploads: Array.from(uploads.values(), (upload) => toExport(UPLOADS, upload)),
    pauses: Array.from(pauses.values(), (pause) => toExport(PAUSES, pause)),
  };
}

/** Yields the documents of the builds and uploads in an export. It keeps the documents of one build in memory. */
export async function* exportDocuments(
  store: Pick<StateStore, 'documents'>,
  { builds, uploads }: Pick<ExportedState, 'builds' | 'uploads'>,
): AsyncGenerator<ExportedDocument> {
  const uploadIds = new Set(uploads.map(({ id }) => id));
  for (const { id } of builds) {
    for (const { kind, imageId, uploadId, text } of await store.documents(String(id))) {
      if (uploadId === undefined) yield { kind, 'image-id': imageId, text };
      // The others belong to uploads that are newer than the export.
      else if (uploadIds.has(uploadId)) yield { kind, 'image-id': imageId, 'upload-id': uploadId, text };
    }
  }
}

/**
 * Imports an export into an empty store, which then owns the images. Waits to be elected leader, so the leading manager
 * has to be stopped.
 *
 * @param options.documents in addition to those in the JSON; read one by one, so that they need little memory
 * @throws StoreError `invalid-export`, `store-not-empty`: the store is unchanged; the signal's reason
 */
export async function importState(
  store: StateStore,
  json: unknown,
  options: { readonly signal?: AbortSignal; readonly documents?: AsyncIterable<unknown> } = {},
): Promise<void> {
  const state = toState(json);
  const leadership = await store.lead(options);
  try {
    await leadership.restore(state, readDocuments(json as ExportedState, state, options.documents));
  } finally {
    await leadership.release();
  }
}

/** Validates the documents of an export, whose state is valid. */
async function* readDocuments(
  { documents = [] }: ExportedState,
  { builds, uploads }: StoredState,
  more: AsyncIterable<unknown> | undefined,
): AsyncGenerator<ImageDocument> {
  let index = 0;
  try {
    for (const source of [documents, ...(more === undefined ? [] : [more])]) {
      for await (const entry of source) {
        const { kind, 'image-id': imageId, 'upload-id': uploadId, text } = DOCUMENT_READER.check(entry);
        if (!builds.has(imageId)) throw new Error(`no build "${imageId}"`);
        if (uploadId !== undefined && uploads.get(uploadId)?.imageId !== imageId) {
          throw new Error(`no upload "${uploadId}" of that build`);
        }
        checkDocument(kind, text);
        index += 1;
        yield { kind, imageId, ...(uploadId !== undefined && { uploadId }), text };
      }
    }
  } catch (error) {
    throw invalidExport(`documents[${index}]: ${errorMessage(error)}`);
  }
}

function invalidExport(reason: string): StoreError {
  return new StoreError('invalid-export', `invalid export: ${reason}; nothing was imported`);
}

function toState(json: unknown): StoredState {
  try {
    const state = READER.check(json) as ExportedState;
    const { owner, 'next-number': nextNumber } = state;
    const builds = toRecords(BUILDS, state.builds, state);
    const uploads = toRecords(UPLOADS, state.uploads, state);
    for (const [index, { imageId }] of [...uploads.values()].entries()) {
      if (!builds.has(imageId)) throw new Error(`uploads[${index}].image-id: no build "${imageId}"`);
    }
    const pauses = toRecords(PAUSES, state.pauses ?? [], state);
    return { owner, nextNumber, builds, uploads, pauses };
  } catch (error) {
    throw invalidExport(errorMessage(error));
  }
}

function toRecords<T extends { readonly id: string }>(
  table: RecordTable<T>,
  exported: readonly ExportedRecord[],
  { owner, 'next-number': nextNumber }: ExportedState,
): ReadonlyMap<string, T> {
  const records = new Map<string, T>();
  for (const [index, entry] of exported.entries()) {
    const record = fromExport(table, entry, `${table.name}[${index}]`);
    const path = `${table.name}[${index}].id`;
    if (records.has(record.id)) throw new Error(`${path}: "${record.id}" occurs twice`);
    const isAdopted = table.name === 'builds' && parseImportedImageId(record.id) !== undefined;
    const hasNumber = table.name !== 'pauses' && !isAdopted;
    if (hasNumber && !isOwn(record.id, owner)) {
      throw new Error(`${path}: "${record.id}" does not belong to owner "${owner}"`);
    }
    if (hasNumber && Number.parseInt(buildKeyOf(record.id), 10) >= nextNumber) {
      throw new Error(`${path}: the number in "${record.id}" is not below next-number, ${nextNumber}`);
    }
    records.set(record.id, record);
  }
  return records;
}

const DOCUMENT_READER = new JsonReader({
  ...objectOf(
    { kind: { enum: ['attestation', 'packages'] }, 'image-id': TEXT, text: TEXT },
    { 'upload-id': TEXT },
  ),
  additionalProperties: false,
});

/** A document in an export. */
export type ExportedDocument = ReturnType<typeof DOCUMENT_READER.check>;

const READER = new JsonReader({
  type: 'object',
  required: ['version', 'owner', 'next-number', 'builds', 'uploads'],
  additionalProperties: false,
  properties: {
    version: { const: 1 },
    owner: { ...TEXT, pattern: OWNER.source },
    'next-number': { type: 'integer', minimum: 1 },
    builds: { type: 'array', items: exportSchema(BUILDS) },
    uploads: { type: 'array', items: exportSchema(UPLOADS) },
    pauses: { type: 'array', items: exportSchema(PAUSES) },
    documents: { type: 'array' },
  },
});

function exportSchema({ schema }: Pick<RecordTable<unknown>, 'schema'>): SettingsSchema {
  const properties = Object.entries(schema.properties).map(([field, property]) => [
    keyOf(field),
    property.type === 'integer' ? { type: 'string' } : property,
  ]);
  const required = (schema.required ?? []).map(keyOf);
  return {
    type: 'object',
    required,
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  };
}

function toExport<T extends object>({ schema }: RecordTable<T>, record: T): ExportedRecord {
  const fields = record as Readonly<Record<string, string | number | boolean | undefined>>;
  const entries = Object.keys(schema.properties).flatMap((field) => {
    const value = fields[field];
    if (value === undefined) return [];
    return [[keyOf(field), typeof value === 'number' ? new Date(value).toISOString() : value] as const];
  });
  return Object.fromEntries(entries);
}

function fromExport<T extends object>(
  { schema }: RecordTable<T>,
  exported: ExportedRecord,
  place: string,
): T {
  const entries = Object.entries(schema.properties).flatMap(([field, { type }]) => {
    const key = keyOf(field);
    const value = exported[key];
    if (value === undefined) return [];
    return [[field, type === 'integer' ? toTime(String(value), `${place}.${key}`) : value]];
  });
  return Object.fromEntries(entries) as T;
}

/** Returns the key of a field: `requested-at` for `requestedAt`. */
function keyOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Parses a time in the format of {@link exportState}: in UTC, with milliseconds. */
function toTime(text: string, place: string): number {
  const time = Date.parse(text);
  if (!Number.isNaN(time) && new Date(time).toISOString() === text) return time;
  throw new Error(`${place} is not a time such as 2026-01-31T12:00:00.000Z`);
}
