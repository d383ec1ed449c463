import {
  type FilterEntry,
  ImageError,
  type ImageProvider,
  type LatestImage,
  latestImage,
  type OperationOptions,
  parseImageFilter,
} from '@nodepool-builder/image-builder';
import type { CloudImageConfiguration, ProviderConfiguration } from '../configuration/configuration.ts';

/** Options of {@link findLatest}. */
interface FindOptions extends OperationOptions {
  /** Ids to consider even if the provider does not list them yet. */
  readonly known?: readonly string[];
  /** True to also list all rejected images with a matching name. They are always listed if no image matches. */
  readonly explain?: boolean;
}

/** Finds a provider's latest image that matches the filters. */
export async function findLatest(
  provider: ImageProvider,
  filters: readonly FilterEntry[],
  { explain = false, ...options }: FindOptions,
): Promise<LatestImage> {
  const filter = parseImageFilter(filters);
  const find = async (withRefused: boolean): Promise<LatestImage> =>
    latestImage(await provider.findImages(filter, { ...options, withRefused }), filter);
  const first = await find(explain);
  return first.latest === undefined && !explain ? await find(true) : first;
}

/** @throws ImageError `invalid-configuration`, `invalid-filter` */
export function findCloudImage(
  { name: provider, cloudImages }: ProviderConfiguration,
  name: string,
): CloudImageConfiguration {
  const found = cloudImages.find((image) => image.name === name);
  if (found === undefined) {
    const names = cloudImages.map((image) => image.name).join(', ');
    const choice = names === '' ? 'add it to cloud-images' : `choose one of: ${names}`;
    throw new ImageError(
      'invalid-configuration',
      `provider "${provider}" has no cloud image "${name}"; ${choice}`,
    );
  }
  if (found.reason === undefined) return found;
  throw new ImageError('invalid-filter', `provider "${provider}", cloud image "${name}": ${found.reason}`);
}

/**
 * Returns the id of a cloud image: its own, or the id of the latest image that matches its filters.
 *
 * @throws ImageError `image-not-found`, and errors of the provider
 */
export async function resolveCloudImage(
  provider: ImageProvider,
  { imageId, filters }: Pick<CloudImageConfiguration, 'imageId' | 'filters'>,
  options: OperationOptions = {},
): Promise<string> {
  if (imageId !== undefined) return imageId;
  const found = await findLatest(provider, filters, options);
  if (found.latest !== undefined) return found.latest.externalId;
  throw new ImageError('image-not-found', noImage(provider.name, found));
}

/** Maximum number of reasons in a message. */
const MAX_REASONS = 5;

/** Explains why no image was found. */
export function noImage(provider: string, { refused }: LatestImage): string {
  const nothing = `no image in provider "${provider}" matches the filters`;
  if (refused.length === 0) return `${nothing}: none has a matching name`;
  const counts = new Map<string, number>();
  for (const { reason } of refused) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const reasons = [...counts].map(([reason, count]) => `${reason} (${count})`);
  const rest = reasons.length > MAX_REASONS ? '; for more, see latest --explain' : '';
  return `${nothing}; ${refused.length} with a matching name: ${reasons.slice(0, MAX_REASONS).join('; ')}${rest}`;
}
