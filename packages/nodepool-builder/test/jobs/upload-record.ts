import type { UploadRecord } from '../../src/jobs/upload-records.ts';

/** Makes the record of an upload. */
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
