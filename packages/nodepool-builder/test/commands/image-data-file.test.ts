import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { ExportedDocument, ExportedState } from '@nodepool-builder/image-manager';
import { formatExport, readExport } from '../../src/commands/image-data-file.ts';

const STATE: ExportedState = {
  version: 1,
  owner: 'k7f3q2xa',
  'next-number': 3,
  builds: [{ id: 'debian-0000000001-k7f3q2xa', reason: 'of "all"\n  "documents": [' }],
  uploads: [],
};

const DOCUMENTS: readonly ExportedDocument[] = [
  { kind: 'attestation', 'image-id': 'debian-1', text: `{"ünï": "🎉\n"}${' '.repeat(200_000)}` },
  { kind: 'attestation', 'image-id': 'debian-1', 'upload-id': 'u-1', text: '  ]' },
];

async function* of<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}

async function textOf(documents: readonly ExportedDocument[]): Promise<string> {
  return (await Array.fromAsync(formatExport(STATE, of(documents)))).join('');
}

/** Writes a file, and reads it as an export. */
async function read(t: TestContext, text: string): Promise<{ state: unknown; documents: unknown[] }> {
  const directory = await mkdtemp(join(tmpdir(), 'image-data-file-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'images.json');
  await writeFile(path, text);
  const { state, documents } = await readExport(path);
  return { state, documents: await Array.fromAsync(documents) };
}

describe('the file of export-image-data', () => {
  it('an image-data export is JSON with the documents of all builds', async () => {
    assert.deepEqual(JSON.parse(await textOf(DOCUMENTS)), { ...STATE, documents: DOCUMENTS });
    assert.deepEqual(JSON.parse(await textOf([])), STATE);
  });

  it('an image-data export is read document by document', async (t) => {
    const { state, documents } = await read(t, await textOf(DOCUMENTS));
    assert.deepEqual(state, STATE);
    assert.deepEqual(documents, DOCUMENTS);
    assert.deepEqual(await read(t, await textOf([])), { state: STATE, documents: [] });
  });

  it('an image-data export may have other line breaks', async (t) => {
    const all = { ...STATE, documents: DOCUMENTS };
    assert.deepEqual(await read(t, JSON.stringify(all)), { state: all, documents: [] });
  });

  it('an image-data export is rejected if it is truncated', async (t) => {
    const text = await textOf(DOCUMENTS);
    await assert.rejects(read(t, text.slice(0, text.lastIndexOf('\n  ]'))), /ends before the end of its doc/);
    await assert.rejects(read(t, text.slice(0, 200_100)), SyntaxError);
    await assert.rejects(read(t, text.slice(0, 50)), SyntaxError);
  });
});
