import type { Logger } from '@nodepool-builder/image-builder';
import { IMAGE_PROVIDERS } from '@nodepool-builder/image-providers';
import type { Configuration } from '../configuration/configuration.ts';
import type { Statistics } from '../jobs/statistics.ts';
import type { ConfiguredProvider } from '../jobs/upload-job.ts';

/** What carries images to each provider of a configuration, by name. */
export function createProviders(
  { providers }: Configuration,
  _statistics: Statistics,
  logger: (name: string) => Logger,
): ReadonlyMap<string, ConfiguredProvider> {
  const created = providers.flatMap((configuration) => {
    const { name, type, imageType, directory } = configuration;
    const create = IMAGE_PROVIDERS[type];
    if (create === undefined) {
      logger('nodepool.builder').warn(`provider ${name}: this release cannot upload to ${type}`);
      return [];
    }
    const settings = { name, formats: [imageType], ...(directory !== undefined && { directory }) };
    return [[name, { configuration, provider: create(settings) }] as const];
  });
  return new Map(created);
}
