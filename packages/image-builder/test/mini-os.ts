import { join } from 'node:path';
import type { DibSettings, DiskImage } from '../src/index.ts';

/** A disk image that the real disk-image-create builds in a few seconds, without a network. */
export const MINI_OS: DiskImage = {
  name: 'mini',
  formats: ['raw'],
  elementsDir: join(import.meta.dirname, '../../../test/elements'),
  envVars: { DIB_JOURNAL_SIZE: '4' },
  publicVariables: ['MINI_*'], // tests read them in the log
};

export const MINI_OS_ELEMENTS: DibSettings = { elements: ['mini-os'] };
