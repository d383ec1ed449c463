import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { type CloudError, cloudError } from '../cloud-error.ts';

/** Limits of one list. */
export interface ListBounds {
  /** Maximum number of pages, including empty ones. */
  readonly pages: number;
  readonly entries: number;
  /** Maximum size of one response in bytes. */
  readonly responseBytes: number;
  /** Maximum size of all responses in bytes. */
  readonly bytes: number;
  /** Maximum seconds from the first request to the last entry. */
  readonly time: number;
}

/** Limits for twice as many images as a site with 100,000 images of up to 5 KiB each, even with one image per page. */
export const LIST_BOUNDS: ListBounds = {
  pages: 200_000,
  entries: 200_000,
  responseBytes: 64 * 2 ** 20,
  bytes: 2 ** 30,
  time: 1800,
};

/** One page of a list. */
export interface ListPage<T> {
  readonly entries: readonly T[];
  /** Marker of the next page; undefined or empty on the last page. */
  readonly next?: string | null | undefined;
}

/** Requests the page with a marker, undefined for the first page, and the given number of entries. */
export type PageRequest<T> = (marker: string | undefined, size: number | undefined) => Promise<ListPage<T>>;

export interface ListOptions {
  /** Subject of errors: `provider store: ListObjectsV2`. */
  readonly subject: string;
  /** Limits for lists of things that are more numerous than images. */
  readonly bounds?: Partial<ListBounds>;
  /**
   * Numbers of entries per page, largest first. If the server rejects one, the next is requested. Default: undefined,
   * the server's own number.
   */
  readonly pageSizes?: readonly (number | undefined)[];
}

/** Page sizes for servers that permit large pages. Some of them reject sizes that others only reduce. */
export const PAGE_SIZES: readonly (number | undefined)[] = [1000, 100, undefined];

/** Error codes with which servers reject a page size (status 400, 412 and 413). */
const REFUSED_CODES: ReadonlySet<unknown> = new Set(['bad-request', 'conflict', 'too-large']);

/** The list whose page is being requested: its limits, and the bytes that it has received. */
interface ListProgress {
  readonly bounds: ListBounds;
  received: number;
}

const CURRENT = new AsyncLocalStorage<ListProgress>();

const BOUNDS = new AsyncLocalStorage<Partial<ListBounds>>();

/** Runs work whose lists have smaller limits. */
export function withListBounds<T>(bounds: Partial<ListBounds>, work: () => T): T {
  return BOUNDS.run(bounds, work);
}

/**
 * Lists page by page. A repeated marker or an exceeded limit ends the list with an error, whatever the server does.
 * HTTP clients count its bytes with a {@link responseMeter}.
 *
 * @param request gets one page; its arguments are the marker of the page before, undefined for the first page, and the
 * number of entries
 * @throws CloudError `endless-list`, or the error of a request
 */
export async function* listPages<T>(
  { subject, bounds: own, pageSizes = [undefined] }: ListOptions,
  request: PageRequest<T>,
): AsyncGenerator<readonly T[]> {
  const bounds = { ...LIST_BOUNDS, ...own, ...BOUNDS.getStore() };
  const progress: ListProgress = { bounds, received: 0 };
  const end = performance.now() + bounds.time * 1000;
  const markers = new Set<string>();
  const endless = (reason: string): CloudError =>
    cloudError('endless-list', subject, `the list does not end: ${reason}`);
  const sizes = [...pageSizes];
  let marker: string | undefined;
  let entries = 0;
  for (let pages = 1; ; pages += 1) {
    const page = await CURRENT.run(progress, () => requestPage(request, marker, sizes));
    entries += page.entries.length;
    if (entries > bounds.entries) throw endless(`it has more than ${bounds.entries} entries`);
    yield page.entries;
    if (!page.next) return;
    marker = page.next;
    // Stored as a digest, because markers may be long and numerous.
    const digest = createHash('sha256').update(marker).digest('base64');
    if (markers.has(digest)) throw endless(`page ${pages} repeats the marker of an earlier one`);
    markers.add(digest);
    if (pages >= bounds.pages) throw endless(`it has more than ${bounds.pages} pages`);
    if (performance.now() > end) throw endless(`it takes longer than ${bounds.time} s`);
  }
}

/** Requests a page, with fewer and fewer entries while the server rejects their number. */
async function requestPage<T>(
  request: PageRequest<T>,
  marker: string | undefined,
  sizes: (number | undefined)[],
): Promise<ListPage<T>> {
  let firstError: unknown;
  for (;;) {
    try {
      return await request(marker, sizes[0]);
    } catch (error) {
      firstError ??= error;
      // The last error would be about a request that this list does not need.
      if (sizes.length === 1 || !REFUSED_CODES.has((error as { code?: unknown }).code)) throw firstError;
      sizes.shift();
    }
  }
}

/**
 * Lists all entries, page by page. A repeated marker or an exceeded limit ends the list with an error, whatever the
 * server does.
 *
 * @throws CloudError `endless-list`, or the error of a request
 */
export async function listAll<T>(options: ListOptions, request: PageRequest<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const page of listPages(options, request)) for (const entry of page) found.push(entry);
  return found;
}

/** Counts the bytes of one response. */
export interface ResponseMeter {
  /** Maximum number of bytes of the response. */
  readonly limit: number;
  /** Reason why a longer response is an error. */
  readonly reason: string;
  /** @throws CloudError `response-too-large` */
  add(bytes: number): void;
}

/**
 * Creates the meter of a response that is read into memory. Call it with the request, so that it counts for the list
 * whose page is requested.
 *
 * @param subject subject of errors
 * @param limit maximum number of bytes, if it is lower than for lists
 */
export function responseMeter(subject: string, limit: number = Number.POSITIVE_INFINITY): ResponseMeter {
  const list = CURRENT.getStore();
  const { bytes, responseBytes } = list?.bounds ?? { ...LIST_BOUNDS, ...BOUNDS.getStore() };
  const own = Math.min(limit, responseBytes);
  const rest = bytes - (list?.received ?? 0);
  const reason =
    own <= rest ? `the response is longer than ${own} bytes` : `the list is longer than ${bytes} bytes`;
  const most = Math.min(own, rest);
  let received = 0;
  return {
    limit: most,
    reason,
    add: (count) => {
      received += count;
      if (list !== undefined) list.received += count;
      if (received > most) throw cloudError('response-too-large', subject, reason);
    },
  };
}

/** Reads a response into memory. @throws CloudError `response-too-large` */
export async function readBounded(body: AsyncIterable<Uint8Array>, meter: ResponseMeter): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    meter.add(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
