import { readFile } from 'node:fs/promises';
import { writeDurably } from '@nodepool-builder/image-builder/module-kit';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { CommandError } from './command-error.ts';
import { withStore } from './manager-store.ts';
import { configOption } from './options.ts';

/** Time limit for a running manager to stop, in milliseconds. */
const STOP_TIMEOUT = 10_000;

/** `export-image-data FILE` and `import-image-data FILE`: the manager's state as JSON. */
export function registerImageData(program: Command, modules: Modules): void {
  program
    .command('export-image-data')
    .summary("save the manager's records as JSON")
    .description("Writes the manager's records of builds and uploads to a file. The manager may be running.")
    .argument('<file>', 'file to write; an existing one is replaced')
    .addOption(configOption())
    .addHelpText('after', exampleOf('export-image-data'))
    .action(async (file: string, { config }: { config: string }) => {
      const { configuration } = await loadConfiguration(config, { modules });
      const { exportState } = await import('@nodepool-builder/image-manager');
      const state = await withStore(configuration, exportState);
      await writeDurably(file, `${JSON.stringify(state, null, 2)}\n`).catch((error: unknown) => {
        throw new CommandError(`${file} cannot be written: ${reasonOf(error)}; name another file`, {
          cause: error,
        });
      });
      console.error(`wrote ${state.builds.length} builds and ${state.uploads.length} uploads to ${file}`);
    });
  program
    .command('import-image-data')
    .summary("load the manager's records from JSON")
    .description(
      'Loads the file of export-image-data into an empty store, to move to another host, or from a file to PostgreSQL. ' +
        'From then on the images belong to this store. Stop the manager first, and run none with the old store again.',
    )
    .argument('<file>', 'file of export-image-data')
    .addOption(configOption())
    .addHelpText('after', exampleOf('import-image-data'))
    .action(async (file: string, { config }: { config: string }) => {
      const { configuration } = await loadConfiguration(config, { modules });
      const json = await readJson(file);
      const { importState, openStateStore } = await import('@nodepool-builder/image-manager');
      const store = await openStateStore(configuration.manager.store);
      const signal = AbortSignal.timeout(STOP_TIMEOUT);
      try {
        await importState(store, json, { signal });
        const { builds, uploads } = await store.read();
        console.error(`read ${builds.size} builds and ${uploads.size} uploads from ${file}`);
      } catch (error) {
        if (!signal.aborted || error !== signal.reason) throw error;
        throw new CommandError('a manager works with this store; stop it first', { cause: error });
      } finally {
        await store.close();
      }
    });
}

function exampleOf(command: string): string {
  return `\nExample:\n  $ nodepool-builder ${command} images.json -c nodepool.yaml`;
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    const remedy = 'name a file that export-image-data wrote';
    throw new CommandError(`${file} cannot be read: ${reasonOf(error)}; ${remedy}`, { cause: error });
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
