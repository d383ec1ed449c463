import { RecordDirectory } from '@nodepool-builder/image-builder/internal';
import { recordName, UPLOAD_RECORD, type UploadRecord } from '../../../src/daemon/jobs/upload-record.ts';

/** Creates the record of an upload. */
export function uploadRecord(fields: Partial<UploadRecord> = {}): UploadRecord {
  return {
    version: 1,
    provider: 'cloud',
    'upload-id': 'upload-1',
    'image-id': '0001',
    'image-name': 'debian',
    'external-name': 'template-debian-1',
    begun: '2016-11-18T14:02:11.000Z',
    ...fields,
  };
}

/** Writes a record as an earlier process would have left it. */
export async function writeUploadRecord(directory: string, record: UploadRecord): Promise<void> {
  await new RecordDirectory(directory, UPLOAD_RECORD).write(recordName(record), record);
}

/** Returns the records on disk. */
export async function readUploadRecords(directory: string): Promise<(UploadRecord | undefined)[]> {
  const records = new RecordDirectory(directory, UPLOAD_RECORD);
  return await Promise.all((await records.names()).map((name) => records.read(name)));
}
