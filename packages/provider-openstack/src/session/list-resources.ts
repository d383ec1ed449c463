import { objectOf } from '@nodepool-builder/image-builder/internal';
import { JsonReader, listAll } from '@nodepool-builder/image-builder/plugin';
import type { BodyReader, ServiceClient } from './service-client.ts';

/** A list of resources. */
export interface ListRequest<T> {
  readonly path: string;
  /** Key of the list in the response. */
  readonly name: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly reader: BodyReader<T>;
  readonly signal: AbortSignal;
}

const PAGE = new JsonReader({ type: 'object' });

const ITEMS = new JsonReader({ type: 'array' });

const LINK = new JsonReader(objectOf({ rel: {} }));

/**
 * Lists Nova or Neutron resources, page by page. Every page except the last one links to the next.
 *
 * @throws CloudError
 */
export async function listResources<T extends { readonly id: string }>(
  client: ServiceClient,
  { path, name, query, reader, signal }: ListRequest<T>,
): Promise<readonly T[]> {
  const check = (response: unknown): { items: readonly T[]; hasNext: boolean } => {
    const { [name]: items, [`${name}_links`]: links } = PAGE.check(response);
    const hasNext = LINK.valid(ITEMS.check(links ?? [], `${name}_links`)).some(({ rel }) => rel === 'next');
    return { items: ITEMS.check(items, name).map((item) => reader.check(item)), hasNext };
  };
  return await listAll({ subject: `cloud ${client.cloud}: list of ${name}` }, async (marker) => {
    const page = { ...query, ...(marker !== undefined && { marker }) };
    const { items: entries, hasNext } = await client.get(path, { check }, { query: page, signal });
    return { entries, next: hasNext ? entries.at(-1)?.id : undefined };
  });
}
