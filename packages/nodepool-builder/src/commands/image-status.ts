import type { ManagerState } from '@nodepool-builder/image-manager';
import type { Command } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { withStore } from './manager-store.ts';
import { configOption } from './options.ts';
import { printRecords, type ShownRecord } from './print-records.ts';

/** `image-status`: the newest version of each disk image, on disk and in each provider. */
export function registerImageStatus(program: Command, modules: Modules): void {
  program
    .command('image-status')
    .summary('show the newest image of each disk image in each provider')
    .description(
      'Shows for each disk image its newest good image and the age of it, at the builders and in each provider.',
    )
    .addOption(configOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ nodepool-builder image-status -c nodepool.yaml')
    .action(async ({ config, json = false }: { config: string; json?: boolean }) => {
      const { configuration } = await loadConfiguration(config, { modules });
      const state = await withStore(configuration, (store) => store.read());
      await printRecords(imageStatus(configuration, state), COLUMNS, json);
    });
}

const COLUMNS = {
  DISKIMAGE: 'diskimage',
  PLACE: 'place',
  STATUS: 'status',
  READY: 'ready',
  NEWEST: 'newest',
  AGE: 'age',
} as const;

/** The part that a build and an upload have in common. */
interface Standing {
  readonly state: string;
  readonly imageId: string;
  readonly requestedAt: number;
}

function imageStatus(configuration: Configuration, state: ManagerState): readonly ShownRecord[] {
  const builds = [...state.builds.values()];
  const uploads = [...state.uploads.values()];
  return configuration.diskimages.flatMap(({ name: diskimage, pause }) => [
    {
      diskimage,
      place: 'builders',
      ...statusOf(
        builds
          .filter((build) => build.diskimage === diskimage && !build.withdrawn)
          .map((build) => ({ ...build, imageId: build.id })),
        pause,
      ),
    },
    ...configuration.providers.flatMap((provider) =>
      provider.images
        .filter((image) => image.diskimage === diskimage)
        .map((image) => ({
          diskimage,
          place: `${provider.name}/${image.name}`,
          ...statusOf(
            uploads.filter(
              (upload) =>
                upload.diskimage === diskimage &&
                upload.provider === provider.name &&
                upload.imageName === image.name,
            ),
            pause || provider.pause || image.pause,
          ),
        })),
    ),
  ]);
}

/** The newest ready one, and the state of the last one. */
function statusOf(standings: readonly Standing[], isPaused: boolean): ShownRecord {
  const newestFirst = standings.toSorted((one, other) => other.requestedAt - one.requestedAt);
  const ready = newestFirst.filter(({ state }) => state === 'ready');
  const [newest] = ready;
  const [last] = newestFirst;
  const isWorking = last?.state === 'building' || last?.state === 'uploading';
  const status = isPaused ? 'paused' : isWorking || last?.state === 'failed' ? last.state : newest && 'ready';
  return {
    status: status ?? 'missing',
    ready: String(ready.length),
    newest: newest?.imageId ?? null,
    requested: newest === undefined ? null : new Date(newest.requestedAt).toISOString(),
  };
}
