import type { LedgerEntry } from '../../src/jobs/upload-ledger.ts';

/** An upload that has begun. */
export function ledgerEntry(fields: Partial<LedgerEntry> = {}): LedgerEntry {
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
