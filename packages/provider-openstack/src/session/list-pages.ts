import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import type { ServiceClient } from './service-client.ts';

/** A list, and the reader of its items. */
export interface ListRequest<T> {
  readonly path: string;
  /** The key of the list in an answer. */
  readonly name: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly read: (item: unknown) => T;
  readonly signal: AbortSignal;
}

const PAGE = new JsonReader({ type: 'object' });

const RESOURCES = new JsonReader({
  type: 'array',
  items: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
});

const LINKS = new JsonReader({ type: 'array', items: { type: 'object', properties: { rel: {} } } });

/**
 * Lists resources of Nova or Neutron, page by page. A page with a successor has a link to it.
 *
 * @throws OpenStackError
 */
export async function listPages<T>(client: ServiceClient, request: ListRequest<T>): Promise<readonly T[]> {
  const { path, name, query, read, signal } = request;
  const validate = (answer: unknown): Page<T> => {
    const { [name]: items, [`${name}_links`]: links = [] } = PAGE.check(answer);
    const resources = RESOURCES.check(items, name);
    const hasNext = LINKS.check(links, `${name}_links`).some(({ rel }) => rel === 'next');
    return { items: resources.map(read), marker: hasNext ? resources.at(-1)?.id : undefined };
  };
  const found: T[] = [];
  for (let marker: string | undefined; ; ) {
    const page = { ...query, ...(marker !== undefined && { marker }) };
    const { value } = await client.json('GET', path, { query: page, validate, signal });
    found.push(...value.items);
    if (value.marker === undefined) return found;
    marker = value.marker;
  }
}

interface Page<T> {
  readonly items: readonly T[];
  /** Id after which the next page starts; undefined on the last page. */
  readonly marker: string | undefined;
}
