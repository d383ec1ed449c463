import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { UploadLedger } from '../../src/jobs/upload-ledger.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { ledgerEntry } from './ledger-entry.ts';

it('an entry is on the disk for the next process, whatever its upload id holds', async (t) => {
  const directory = join(temporaryDirectory(t), 'uploads');
  const logger = new RecordingLogger();
  const ledger = await UploadLedger.open(directory, logger);
  const entries = ['H:host:42', '../../etc/passwd', 'x'.repeat(500)].map((id) =>
    ledgerEntry({ 'upload-id': id }),
  );
  for (const entry of entries) await ledger.put(entry);
  assert.deepEqual(
    (await UploadLedger.open(directory, logger)).entries.toSorted(byId),
    entries.toSorted(byId),
  );
  assert.deepEqual(logger.lines, []);
});

function byId(one: { 'upload-id': string }, other: { 'upload-id': string }): number {
  return one['upload-id'].localeCompare(other['upload-id']);
}

it('an entry belongs to one upload to one provider', async (t) => {
  const directory = temporaryDirectory(t);
  const ledger = await UploadLedger.open(directory, new RecordingLogger());
  const [one, other] = [ledgerEntry(), ledgerEntry({ provider: 'other' })];
  await ledger.put(one);
  await ledger.put(other);
  await ledger.remove(one);
  assert.equal(ledger.get(one), undefined);
  assert.deepEqual(ledger.get(other), other);
  assert.equal((await readdir(directory)).length, 1);
});

it('changes of one entry that come at once take effect in their order', async (t) => {
  const directory = temporaryDirectory(t);
  const logger = new RecordingLogger();
  const ledger = await UploadLedger.open(directory, logger);
  const last = ledgerEntry({ 'external-id': 'last' });
  await Promise.all([
    ledger.put(ledgerEntry()),
    ledger.remove(ledgerEntry()),
    ledger.put(ledgerEntry({ 'external-id': 'first' })),
    ledger.put(last),
  ]);
  assert.deepEqual(ledger.entries, [last]);
  assert.deepEqual((await UploadLedger.open(directory, logger)).entries, [last]);
});

it('a damaged record is logged and left alone; a half-written one is removed', async (t) => {
  const directory = temporaryDirectory(t);
  await writeFile(join(directory, 'torn.json'), '{"version": 1, "provider"');
  await writeFile(join(directory, 'newer.json'), JSON.stringify({ ...ledgerEntry(), version: 2 }));
  await writeFile(join(directory, 'x.json.new'), '{"ver');
  const logger = new RecordingLogger();
  assert.deepEqual((await UploadLedger.open(directory, logger)).entries, []);
  assert.deepEqual((await readdir(directory)).toSorted(), ['newer.json', 'torn.json']);
  assert.equal(
    logger.lines.filter((line) => /^warn the upload record .* is damaged: .* left alone/.test(line)).length,
    2,
  );
});
