import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import type { ProviderListing } from './find-orphans.ts';

/** Arguments of {@link listProviders}. */
export interface ListOptions {
  readonly providers: readonly { readonly name: string }[];
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
}

/** Lists the images of all providers. A provider that fails is left out, with a warning. */
export async function listProviders(
  { providers, provider, logger }: ListOptions,
  signal: AbortSignal,
): Promise<readonly ProviderListing[]> {
  const listings = await Promise.all(
    providers.map(async ({ name }): Promise<ProviderListing | undefined> => {
      try {
        const images = await provider(name)?.list({ signal });
        return images && { provider: name, images };
      } catch (error) {
        if (signal.aborted) throw error;
        logger.warn(
          `provider ${name} cannot be listed: ${error instanceof Error ? error.message : String(error)}`,
        );
        return undefined;
      }
    }),
  );
  return listings.filter((listing) => listing !== undefined);
}
