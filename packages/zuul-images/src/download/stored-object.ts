import type { IncomingMessage } from 'node:http';
import { ImageError } from '@nodepool-builder/image-builder';
import { retryAfterSeconds } from '@nodepool-builder/image-builder/internal';
import { nameOf } from './artifact-url.ts';
import type { HttpSource, HttpStream } from './http-source.ts';
import { TransientError, UnusableRangesError } from './retries.ts';
import { isIdentity } from './unpacking.ts';

/** Milliseconds after a modification after which its date identifies the content (RFC 9110, 8.8.2.2). */
const DATE_IS_STRONG = 1000;

const GONE: ReadonlySet<number> = new Set([404, 410]);

/** Statuses for an expired signed URL, and for missing permissions. */
const FORBIDDEN: ReadonlySet<number> = new Set([400, 401, 403]);

const BUSY: ReadonlySet<number> = new Set([408, 425, 429]);

/** Statuses with which a server may reject a range, although it would send the whole object. */
const RANGE_REFUSED: ReadonlySet<number> = new Set([400, 403, 405, 406, 412, 416, 500, 501]);

/** Maximum number of characters of an error's body that are searched. */
const MAX_BODY_SIZE = 4096;

/** An object that is fetched in ranges, as it is stored. */
export interface RangedObject {
  /** Size in bytes. */
  readonly size: number;
  /** Identifies the content: entity tag or date, for If-Range. */
  readonly validator: string;
}

/** A missing part of an object. */
export interface Range {
  /** Position of the next byte. */
  position: number;
  /** Position after the last byte. */
  readonly end: number;
}

/** An object whose server supports no ranges. */
export interface WholeObject {
  readonly stream: HttpStream;
  /** Size in bytes, if the server sends it. */
  readonly size: number | undefined;
  readonly contentEncoding: string | undefined;
}

/**
 * Finds out how an object can be fetched, with a GET of its first byte. A signed URL does not allow HEAD, and a server
 * may announce ranges that it does not support.
 *
 * @throws TransientError
 * @throws ImageError `artifact-expired`, `artifact-refused`
 */
export async function findObject(
  source: HttpSource,
  signal: AbortSignal,
): Promise<RangedObject | WholeObject> {
  const stream = await source.get({ range: 'bytes=0-0' }, signal);
  const { headers, statusCode = 0 } = stream.response;
  // An empty object has no first byte.
  const isEmpty = statusCode === 416 && headers['content-range'] === 'bytes */0';
  if (statusCode !== 206 && !RANGE_REFUSED.has(statusCode)) return await wholeObject(source, stream, signal);
  const size = isEmpty ? 0 : rangeOf(stream.response)?.size;
  const validator = validatorOf(stream.response);
  stream.response.resume();
  // Without a validator, ranges of two versions could be mixed. A server that compresses may do so for each range.
  const isUsable = (statusCode === 206 || isEmpty) && isIdentity(headers['content-encoding']);
  if (isUsable && size !== undefined && validator !== undefined) return { size, validator };
  return await findWhole(source, signal);
}

/**
 * Requests an object without ranges.
 *
 * @throws TransientError
 * @throws ImageError `artifact-expired`, `artifact-refused`
 */
export async function findWhole(source: HttpSource, signal: AbortSignal): Promise<WholeObject> {
  return await wholeObject(source, await source.get({}, signal), signal);
}

async function wholeObject(
  source: HttpSource,
  stream: HttpStream,
  signal: AbortSignal,
): Promise<WholeObject> {
  const { statusCode, headers } = stream.response;
  if (statusCode !== 200) throw await downloadError(source, stream, signal);
  if (headers['content-type']?.startsWith('text/html')) {
    stream.response.destroy();
    throw new ImageError(
      'artifact-refused',
      `${nameOf(stream.url)} is a web page, not a disk image; check the URL, and whether the server requires a login`,
    );
  }
  const length = headers['content-length'];
  const size = length === undefined ? undefined : Number(length);
  return { stream, size, contentEncoding: headers['content-encoding'] };
}

/**
 * Requests a range of an object.
 *
 * @throws UnusableRangesError
 * @throws TransientError
 * @throws ImageError `artifact-expired`
 */
export async function getRange(
  source: HttpSource,
  { size, validator }: RangedObject,
  { position, end }: Range,
  signal: AbortSignal,
): Promise<HttpStream> {
  const headers = { range: `bytes=${position}-${end - 1}`, 'if-range': validator };
  const stream = await source.get(headers, signal);
  const { statusCode: status = 0 } = stream.response;
  const range = rangeOf(stream.response);
  const isSame = validatorOf(stream.response) === validator && range?.size === size;
  if (status === 206 && isSame && range.begin === position && range.end === end) return stream;
  const error = [200, 206, 416, 501].includes(status)
    ? undefined
    : await downloadError(source, stream, signal);
  stream.response.destroy();
  const mayBeRange = error instanceof ImageError && error.code === 'artifact-refused';
  if (error !== undefined && !mayBeRange) throw error;
  const reason = 'it changed, or its server does not confirm that it is the same';
  throw new UnusableRangesError(`${nameOf(stream.url)} cannot be downloaded in ranges: ${reason}`, error);
}

/** Returns the strong validator of a response. */
function validatorOf({ headers }: IncomingMessage): string | undefined {
  const { etag, 'last-modified': modified, date } = headers;
  // Swift sends entity tags without quotes.
  if (etag !== undefined) return etag.startsWith('W/') ? undefined : etag;
  const age = Date.parse(date ?? '') - Date.parse(modified ?? '');
  return age >= DATE_IS_STRONG ? modified : undefined;
}

function rangeOf({
  headers,
}: IncomingMessage): { readonly begin: number; readonly end: number; readonly size: number } | undefined {
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  return size === undefined ? undefined : { begin: Number(first), end: Number(last) + 1, size: Number(size) };
}

/** Converts a response without the artifact to an error, and destroys the response. */
async function downloadError(source: HttpSource, stream: HttpStream, signal: AbortSignal): Promise<Error> {
  const { url, response } = stream;
  const { statusCode: status = 0, headers } = response;
  const name = nameOf(url);
  try {
    if (GONE.has(status)) return expired(name, `the server responded with ${status}`);
    if (BUSY.has(status) || status >= 500) {
      const retryAfter = retryAfterSeconds(headers['retry-after'], Date.now());
      return new TransientError(`${name}: the server responded with ${status}`, undefined, retryAfter);
    }
    const says = async (): Promise<string> => await beginning(source.body(stream, signal));
    if (FORBIDDEN.has(status) && (isExpired(url, Date.now()) || /expired/i.test(await says()))) {
      return expired(name, `the server responded with ${status}, because the signed URL has expired`);
    }
    return new ImageError(
      'artifact-refused',
      `${name} cannot be fetched: the server responded with ${status}; make the artifact readable without a login`,
    );
  } finally {
    response.destroy();
  }
}

function expired(name: string, reason: string): ImageError {
  return new ImageError(
    'artifact-expired',
    `${name} no longer exists: ${reason}; run the job that builds it again`,
  );
}

async function beginning(body: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  try {
    for await (const chunk of body) {
      text += String(chunk);
      if (text.length >= MAX_BODY_SIZE) break;
    }
  } catch {
    // The beginning of an interrupted body is enough.
  }
  return text.slice(0, MAX_BODY_SIZE);
}

/** Expiry of a signed URL from its query parameters, one row for each signature scheme. */
const EXPIRIES: readonly ((query: URLSearchParams) => number)[] = [
  // AWS signature version 4, and Google's variant
  (query) => basicTime(query.get('X-Amz-Date')) + seconds(query.get('X-Amz-Expires')),
  (query) => basicTime(query.get('X-Goog-Date')) + seconds(query.get('X-Goog-Expires')),
  // AWS signature version 2
  (query) => (query.has('Signature') ? seconds(query.get('Expires')) : Number.NaN),
  // Swift's temporary URLs: seconds since 1970, or ISO 8601
  (query) => timeOf(query.get('temp_url_expires')),
  // Azure's shared access signatures
  (query) => timeOf(query.get('se')),
];

/** Returns whether the signature of the URL has expired. */
export function isExpired({ searchParams }: URL, now: number): boolean {
  return EXPIRIES.some((expiry) => expiry(searchParams) <= now);
}

function seconds(text: string | null): number {
  return text !== null && /^\d+$/.test(text) ? Number(text) * 1000 : Number.NaN;
}

function timeOf(text: string | null): number {
  return text === null || /^\d+$/.test(text) ? seconds(text) : Date.parse(text);
}

/** Parses `20130524T000000Z`, which Date does not support. */
function basicTime(text: string | null): number {
  return Date.parse((text ?? '').replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5'));
}
