import type { UnrecordedImage } from '@nodepool-builder/image-manager';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { withStore } from './manager-store.ts';
import { configOption } from './options.ts';
import { printRecords, type ShownRecord } from './print-records.ts';
import { unrecordedImages } from './unrecorded-images.ts';

/** `alien-image-list`: lists images in providers and at builders that are in no record. */
export function registerAlienImageList(program: Command, modules: Modules): void {
  program
    .command('alien-image-list')
    .summary('list images that are in no record of the manager')
    .description(
      'Lists images in the providers and at the builders that are in no record of the manager. The manager deletes ' +
        'those with its own tag (OURS: yes) once it has found them twice in a row, and never touches the others.',
    )
    .addOption(configOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ nodepool-builder alien-image-list -c nodepool.yaml')
    .action(async ({ config, json = false }: { config: string; json?: boolean }) => {
      const { configuration } = await loadConfiguration(config, { modules });
      const images = await withStore(configuration, (store) => unrecordedImages(configuration, store));
      await printRecords(images.map(toShownRecord), COLUMNS, json);
    });
}

const COLUMNS = {
  PLACE: 'place',
  'IMAGE-ID': 'image-id',
  'EXTERNAL-ID': 'external-id',
  'UPLOAD-ID': 'upload-id',
  OURS: 'ours',
} as const;

function toShownRecord(unrecorded: UnrecordedImage): ShownRecord {
  const ours = unrecorded.isOurs ? 'yes' : 'no';
  if (unrecorded.location === 'builder') return { place: 'builder', 'image-id': unrecorded.imageId, ours };
  const { imageId, externalId, uploadId } = unrecorded.image;
  return {
    place: unrecorded.provider,
    'image-id': imageId,
    'external-id': externalId,
    'upload-id': uploadId ?? null,
    ours,
  };
}
