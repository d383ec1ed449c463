import type { Upload } from '@nodepool-builder/image-manager';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { hasStore, withStore } from './manager-store.ts';
import { printOfferedImages } from './offered-images.ts';
import { configOption } from './options.ts';
import { printRecords, type ShownRecord } from './print-records.ts';

interface ImageListOptions {
  readonly config: string;
  readonly json?: boolean;
  readonly offered?: boolean;
}

/** `image-list`: the uploads in the records of the manager; without a manager, the images that builders offer. */
export function registerImageList(program: Command, modules: Modules): void {
  program
    .command('image-list')
    .summary('list images in providers, or at builders')
    .description(
      'Lists the images in the providers, from the records of the manager. Without a manager, and with --offered, it ' +
        'lists the images that builders offer to the job servers and those in images-dir of this host.',
    )
    .addOption(configOption())
    .option('--offered', 'list what builders offer, even if there is a manager')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ nodepool-builder image-list -c nodepool.yaml')
    .action(async ({ config, json = false, offered = false }: ImageListOptions) => {
      const { configuration } = await loadConfiguration(config, { modules });
      if (offered || !hasStore(configuration)) return await printOfferedImages(configuration, json);
      const { uploads } = await withStore(configuration, (store) => store.read());
      await printRecords([...uploads.values()].map(describeUpload), COLUMNS, json);
    });
}

const COLUMNS = {
  'IMAGE-ID': 'image-id',
  'UPLOAD-ID': 'upload-id',
  PROVIDER: 'provider',
  IMAGE: 'image-name',
  'EXTERNAL-ID': 'external-id',
  STATE: 'state',
  AGE: 'age',
} as const;

function describeUpload(upload: Upload): ShownRecord {
  const { id, imageId, provider, imageName, externalId, state, reason, error } = upload;
  return {
    'image-id': imageId,
    'upload-id': id,
    provider,
    'image-name': imageName,
    'external-id': externalId ?? null,
    state,
    requested: new Date(upload.requestedAt).toISOString(),
    reason,
    error: error ?? null,
  };
}
