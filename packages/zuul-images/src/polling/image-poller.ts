import type { BuilderEntry } from '@nodepool-builder/image-builder';
import { openZuulApi } from '../api/zuul-api.ts';
import { ProcessedBuilds } from '../builds/processed-builds.ts';
import { isImageExpired } from '../zuul-artifact/available-artifacts.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import { BuildImporter, type BuildImporterOptions } from './build-importer.ts';
import type { BuildReports } from './build-reports.ts';
import { startPoller } from './poller.ts';

/** Settings of {@link pollImage}. */
export interface ImagePollerOptions extends Pick<BuildImporterOptions, 'site' | 'logger'> {
  /** Directory of the records of processed builds. */
  readonly directory: string;
  readonly reports: BuildReports;
}

/**
 * Polls for new builds of one image.
 *
 * @returns a function that stops polling. It does not wait for a requested build, because the next poller waits for the
 * same job.
 */
export function pollImage(
  { diskimage, settings }: BuilderEntry<ZuulSettings>,
  { directory, site, reports, logger }: ImagePollerOptions,
): () => Promise<void> {
  const { name } = diskimage;
  const { job, mqtt, 'poll-interval': seconds } = settings;
  const createImporter = async (): Promise<BuildImporter> =>
    new BuildImporter({
      api: await openZuulApi(settings, logger),
      source: { ...settings, name },
      processed: await ProcessedBuilds.open(directory, name),
      site,
      isExpired: ({ artifacts }, signal) => isImageExpired(artifacts, diskimage, settings, signal),
      logger,
    });
  let importer: BuildImporter | undefined;
  // Precedes the poller, because a subscription that throws must leave nothing running.
  const unsubscribe = mqtt && reports.subscribe(mqtt, { job, wake: () => poller.wake() });
  const poller = startPoller({
    name,
    poll: async (signal) => {
      importer ??= await createImporter(); // an unreadable file is logged, and read again by the next poll
      await importer.run(signal);
    },
    interval: seconds * 1000,
    logger,
  });
  return async () => {
    await unsubscribe?.();
    await poller.close();
  };
}
