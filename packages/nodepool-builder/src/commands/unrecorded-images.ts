import type { UnrecordedImage } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { Providers } from '../daemon/providers.ts';
import { toManagerConfiguration } from '../manager/manager-configuration.ts';
import type { StateView } from './manager-store.ts';
import { STANDARD_ERROR_LOGGER } from './standard-error-logger.ts';

/** Lists the images in providers and at builders that are in no record of the manager. */
export async function unrecordedImages(
  configuration: Configuration,
  store: StateView,
): Promise<readonly UnrecordedImage[]> {
  const { listUnrecordedImages } = await import('@nodepool-builder/image-manager');
  const providers = new Providers({ logger: () => STANDARD_ERROR_LOGGER, environment: process.env });
  providers.configure(configuration);
  try {
    return await listUnrecordedImages(
      {
        configuration: toManagerConfiguration(configuration),
        store,
        servers: jobServers(configuration),
        logger: STANDARD_ERROR_LOGGER,
      },
      (name) => providers.get(name)?.provider,
      new AbortController().signal,
    );
  } finally {
    providers[Symbol.dispose]();
  }
}
