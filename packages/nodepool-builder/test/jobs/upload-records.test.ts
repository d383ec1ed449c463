import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { UploadRecords } from '../../src/jobs/upload-records.ts';
import { uploadRecord } from './upload-record.ts';

it('a record is on disk for the next process, whatever its upload id', async (t) => {
  const directory = join(temporaryDirectory(t), 'uploads');
  const logger = new RecordingLogger();
  const records = await UploadRecords.open(directory, logger);
  const uploads = ['H:host:42', '../../etc/passwd', 'x'.repeat(500)].map((id) =>
    uploadRecord({ 'upload-id': id }),
  );
  for (const upload of uploads) await records.put(upload);
  assert.deepEqual((await UploadRecords.open(directory, logger)).all.toSorted(byId), uploads.toSorted(byId));
  assert.deepEqual(logger.lines, []);
});

function byId(one: { 'upload-id': string }, other: { 'upload-id': string }): number {
  return one['upload-id'].localeCompare(other['upload-id']);
}

it('a record belongs to one upload to one provider', async (t) => {
  const directory = temporaryDirectory(t);
  const records = await UploadRecords.open(directory, new RecordingLogger());
  const [one, other] = [uploadRecord(), uploadRecord({ provider: 'other' })];
  await records.put(one);
  await records.put(other);
  await records.remove(one);
  assert.equal(records.get(one), undefined);
  assert.deepEqual(records.get(other), other);
  assert.equal((await readdir(directory)).length, 1);
});

it('concurrent changes of a record take effect in order', async (t) => {
  const directory = temporaryDirectory(t);
  const logger = new RecordingLogger();
  const records = await UploadRecords.open(directory, logger);
  const last = uploadRecord({ 'external-id': 'last' });
  await Promise.all([
    records.put(uploadRecord()),
    records.remove(uploadRecord()),
    records.put(uploadRecord({ 'external-id': 'first' })),
    records.put(last),
  ]);
  assert.deepEqual(records.all, [last]);
  assert.deepEqual((await UploadRecords.open(directory, logger)).all, [last]);
});

it('a damaged record is logged and left alone; a half-written one is removed', async (t) => {
  const directory = temporaryDirectory(t);
  await writeFile(join(directory, 'torn.json'), '{"version": 1, "provider"');
  await writeFile(join(directory, 'newer.json'), JSON.stringify({ ...uploadRecord(), version: 2 }));
  await writeFile(join(directory, 'x.json.new'), '{"ver');
  const logger = new RecordingLogger();
  assert.deepEqual((await UploadRecords.open(directory, logger)).all, []);
  assert.deepEqual((await readdir(directory)).toSorted(), ['newer.json', 'torn.json']);
  assert.equal(
    logger.lines.filter((line) => /^warn the upload record .* is damaged: .* left alone/.test(line)).length,
    2,
  );
});
