import type { IncomingMessage } from 'node:http';
import { ImageError } from '@nodepool-builder/image-builder';
import { retryAfterSeconds } from '@nodepool-builder/image-builder/module-kit';
import { nameOf } from './artifact-url.ts';
import type { Answer } from './http-source.ts';
import { TransientFailure } from './retries.ts';

const GONE: ReadonlySet<number> = new Set([404, 410]);

/** Statuses for an expired signed URL, and for missing permissions. */
const FORBIDDEN: ReadonlySet<number> = new Set([400, 401, 403]);

const BUSY: ReadonlySet<number> = new Set([408, 425, 429]);

/** Characters of an error's body that are searched. */
const LONGEST_BODY = 4096;

/** Translates a response without the artifact into an error, and destroys the response. */
export async function refusalOf({ url, response }: Answer): Promise<Error> {
  const { statusCode: status = 0, headers } = response;
  const name = nameOf(url);
  try {
    if (GONE.has(status)) return expired(name, `the server answered ${status}`);
    if (BUSY.has(status) || status >= 500) {
      const retryAfter = retryAfterSeconds(headers['retry-after'], Date.now());
      return new TransientFailure(`${name}: the server answered ${status}`, undefined, retryAfter);
    }
    if (FORBIDDEN.has(status) && (isExpired(url, Date.now()) || /expired/i.test(await beginning(response)))) {
      return expired(name, `the server answered ${status}, because the signed URL has expired`);
    }
    return new ImageError(
      'artifact-refused',
      `${name} cannot be fetched: the server answered ${status}; make the artifact readable without a login`,
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

async function beginning(response: IncomingMessage): Promise<string> {
  let text = '';
  try {
    for await (const chunk of response) {
      text += String(chunk);
      if (text.length >= LONGEST_BODY) break;
    }
  } catch {
    // The beginning of an interrupted body is enough.
  }
  return text.slice(0, LONGEST_BODY);
}

/** Expiry of a signed URL by its query parameters, a row for each signature scheme. */
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

/** Whether the signature of the URL has expired. */
export function isExpired({ searchParams }: URL, now: number): boolean {
  return EXPIRIES.some((expiry) => expiry(searchParams) <= now);
}

function seconds(text: string | null): number {
  return text !== null && /^\d+$/.test(text) ? Number(text) * 1000 : Number.NaN;
}

function timeOf(text: string | null): number {
  return text === null || /^\d+$/.test(text) ? seconds(text) : Date.parse(text);
}

/** Parses `20130524T000000Z`, which Date does not. */
function basicTime(text: string | null): number {
  return Date.parse((text ?? '').replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5'));
}
