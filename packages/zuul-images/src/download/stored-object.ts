import type { IncomingMessage } from 'node:http';
import { ImageError } from '@nodepool-builder/image-builder';
import { nameOf } from './artifact-url.ts';
import type { Run } from './blocks.ts';
import type { Answer, HttpSource } from './http-source.ts';
import type { ObjectIdentity } from './journal.ts';
import { refusalOf } from './refusal.ts';
import { ObjectReplaced } from './retries.ts';

/** Milliseconds from a modification on after which no other can have the same date (RFC 9110, 8.8.2.2). */
const DATE_IS_STRONG = 1000;

/** An object of which parts can be fetched. */
export interface RangedObject extends ObjectIdentity {
  readonly contentEncoding: string | undefined;
}

/** An object that comes from its beginning to its end, or not at all. */
export interface WholeObject {
  /** What brings it. */
  readonly answer: Answer;
  /** Bytes, if the server tells. */
  readonly size: number | undefined;
  readonly contentEncoding: string | undefined;
}

/**
 * Looks how an object can be fetched, by a GET of its first byte: a signed URL is good for no HEAD, and what servers
 * say of ranges is not always what they do.
 *
 * @throws TransientFailure
 * @throws ImageError `artifact-expired`, `artifact-refused`
 * @throws the signal's reason
 */
export async function findObject(
  source: HttpSource,
  signal: AbortSignal,
): Promise<RangedObject | WholeObject> {
  const answer = await source.get({ range: 'bytes=0-0' }, signal);
  const { url, response } = answer;
  const contentEncoding = response.headers['content-encoding'];
  if (response.statusCode === 200) {
    checkIsFile(answer);
    return { answer, size: sizeOf(response), contentEncoding };
  }
  // Of an empty object no server has a first byte.
  const isEmpty = response.statusCode === 416 && response.headers['content-range'] === 'bytes */0';
  if (response.statusCode !== 206 && !isEmpty) throw await refusalOf(response, url);
  const size = isEmpty ? 0 : rangeOf(response)?.size;
  const validator = validatorOf(response);
  response.resume();
  if (size !== undefined && validator !== undefined) {
    return { size, validator, contentEncoding };
  }
  return await findWhole(source, signal);
}

/** Parts of an object that cannot be told from its successor are of no use. */
async function findWhole(source: HttpSource, signal: AbortSignal): Promise<WholeObject> {
  const answer = await source.get({}, signal);
  const { url, response } = answer;
  if (response.statusCode !== 200) throw await refusalOf(response, url);
  checkIsFile(answer);
  return { answer, size: sizeOf(response), contentEncoding: response.headers['content-encoding'] };
}

/**
 * Asks for a part of an object, the end not included.
 *
 * @throws ObjectReplaced if the server has another one now
 * @throws TransientFailure
 * @throws ImageError `artifact-expired`, `artifact-refused`
 * @throws the signal's reason
 */
export async function getRange(
  source: HttpSource,
  { size, validator }: ObjectIdentity,
  { begin, end }: Run,
  signal: AbortSignal,
): Promise<Answer> {
  const fields = { range: `bytes=${begin}-${end - 1}`, 'if-range': validator };
  const answer = await source.get(fields, signal);
  const { url, response } = answer;
  const { statusCode: status } = response;
  if (status === 206) {
    const range = rangeOf(response);
    if (
      validatorOf(response) === validator &&
      range?.size === size &&
      range.begin === begin &&
      range.end === end
    )
      return answer;
    response.destroy();
    throw new ObjectReplaced(`${nameOf(url)} has other bytes now, or another name for them`);
  }
  if (status !== 200 && status !== 416) throw await refusalOf(response, url);
  response.destroy();
  throw new ObjectReplaced(`${nameOf(url)} was answered with ${status} in place of a part`);
}

/** What tells this object from any other that may take its place, byte by byte. */
function validatorOf({ headers }: IncomingMessage): string | undefined {
  const { etag, 'last-modified': modified, date } = headers;
  // Swift sends its tags without quotes.
  if (etag !== undefined) return etag.startsWith('W/') ? undefined : etag;
  const age = Date.parse(date ?? '') - Date.parse(modified ?? '');
  return age >= DATE_IS_STRONG ? modified : undefined;
}

function rangeOf({ headers }: IncomingMessage): (Run & { readonly size: number }) | undefined {
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  return size === undefined ? undefined : { begin: Number(first), end: Number(last) + 1, size: Number(size) };
}

function sizeOf({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}

/** Refuses what a login page in front of a server sends in place of anything. */
function checkIsFile({ url, response }: Answer): void {
  if (!response.headers['content-type']?.startsWith('text/html')) return;
  response.destroy();
  throw new ImageError(
    'artifact-refused',
    `${nameOf(url)} is a web page, not a disk image; check the URL and the credentials for its host`,
  );
}
