import { writeDurably } from '@nodepool-builder/image-builder/internal';
import { exportDocuments, exportState, importState } from '@nodepool-builder/image-manager';
import { withOpenStore, withStore } from '../site/state-view.ts';
import { CommandError, failing } from '../terms/command-error.ts';
import { configured } from './configured-command.ts';
import { formatExport, readExport } from './image-data-file.ts';

/** Timeout for a running manager to stop, in milliseconds. */
const STOP_TIMEOUT = 10_000;

/** `export-image-data FILE` and `import-image-data FILE`: the manager's state as JSON. */
export const register = configured(
  {
    name: 'export-image-data',
    description:
      "Writes the manager's records of builds and uploads to a file, with their attestations. The manager may be running.",
    argument: ['<file>', 'file to write; an existing one is replaced'],
    example: 'images.json',
    run: async (site, _, file) => {
      const state = await withStore(await site.configuration(), async (store) => {
        const exported = await exportState(store);
        const unwritable = failing(`${file} cannot be written`, 'name another file');
        await writeDurably(file, formatExport(exported, exportDocuments(store, exported))).catch(unwritable);
        return exported;
      });
      console.error(`wrote ${state.builds.length} builds and ${state.uploads.length} uploads to ${file}`);
    },
  },
  {
    name: 'import-image-data',
    description:
      'Loads the file of export-image-data into an empty store, to move to another host, or from a file to PostgreSQL. ' +
      'From then on the images belong to this store. Stop the manager first, and run none with the old store again.',
    argument: ['<file>', 'file of export-image-data'],
    example: 'images.json',
    run: async (site, _, file) => {
      const configuration = await site.configuration();
      const unreadable = failing(
        `${file} cannot be read`,
        'name a file that export-image-data wrote',
        'not-found',
      );
      const { state: data, documents } = await readExport(file).catch(unreadable);
      await withOpenStore(configuration, async (store) => {
        const signal = AbortSignal.timeout(STOP_TIMEOUT);
        await importState(store, data, { signal, documents }).catch((cause: unknown) => {
          if (cause !== signal.reason) throw cause;
          throw new CommandError('a manager is using this store; stop it first', 'refused', { cause });
        });
        const { builds, uploads } = await store.read();
        console.error(`read ${builds.size} builds and ${uploads.size} uploads from ${file}`);
      });
    },
  },
);
