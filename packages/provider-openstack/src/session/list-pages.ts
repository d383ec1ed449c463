import { list, record, text } from './answer-shape.ts';
import type { ServiceClient } from './service-client.ts';

/** What is listed, and how its items are read. */
export interface ListRequest<T> {
  readonly path: string;
  /** The key of the list in an answer. */
  readonly name: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly read: (item: Readonly<Record<string, unknown>>) => T;
  readonly signal: AbortSignal;
}

/**
 * Asks Nova or Neutron for a list, page by page: each says with a link that there is more.
 *
 * @throws OpenStackError
 */
export async function listPages<T>(client: ServiceClient, request: ListRequest<T>): Promise<readonly T[]> {
  const { path, name, query, read, signal } = request;
  const validate = (answer: unknown): Page<T> => {
    const { [name]: items, [`${name}_links`]: links = [] } = record(answer, 'the answer');
    const records = list(items, name).map((item) => record(item, `${name}[]`));
    const hasNext = list(links, `${name}_links`).some((link) => record(link, 'link').rel === 'next');
    const last = hasNext ? records.at(-1) : undefined;
    return { items: records.map(read), marker: last && text(last.id, `${name}[].id`) };
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
  /** The id after which the next page begins; undefined on the last one. */
  readonly marker: string | undefined;
}
