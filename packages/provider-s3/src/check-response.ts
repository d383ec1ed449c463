import { cloudError, readBounded, responseMeter } from '@nodepool-builder/image-builder/module-kit';
import type { DeserializeMiddleware, HttpResponse } from '@smithy/types';

/** Root element of each response with a document. Responses without one are empty, or are the bytes of an object. */
const ROOTS: Readonly<Record<string, string>> = {
  ListObjectsV2: 'ListBucketResult',
  ListParts: 'ListPartsResult',
  ListMultipartUploads: 'ListMultipartUploadsResult',
  CreateMultipartUpload: 'InitiateMultipartUploadResult',
  CompleteMultipartUpload: 'CompleteMultipartUploadResult',
};

/** Operations whose response always has an ETag. */
const WITH_ETAG: ReadonlySet<string> = new Set(['GetObject', 'HeadObject', 'PutObject', 'UploadPart']);

/** Place of {@link checkResponse}: next to the connection, before the SDK parses. */
export const CHECK_PLACE = { name: 'checkResponse', step: 'deserialize', priority: 'low' } as const;

/**
 * Creates the middleware that refuses every response that S3 never sends, such as the page of a proxy, which the SDK takes
 * for an empty list. It also limits what the SDK reads into memory.
 */
export function checkResponse<I extends object, O extends object>(
  subject: string,
): DeserializeMiddleware<I, O> {
  return (next, context) => async (args) => {
    const operation = String(context.commandName).replace(/Command$/, '');
    const refuse = (reason: string): never => {
      throw cloudError(
        'invalid-answer',
        `${subject}: ${operation}`,
        `this is not a response of S3: ${reason}`,
      );
    };
    const result = await next(args);
    const response = result.response as HttpResponse;
    const { statusCode: status, headers } = response;
    const isSuccess = status >= 200 && status < 300;
    if (isSuccess && WITH_ETAG.has(operation) && !headers.etag)
      refuse(`it has ${typeOf(headers)} and no ETag`);
    if (isSuccess && operation === 'GetObject') return result;
    const meter = responseMeter(`${subject}: ${operation}`);
    const body = await readBounded((response.body ?? []) as AsyncIterable<Uint8Array>, meter);
    response.body = new Uint8Array(body);
    const root = rootOf(body);
    // CompleteMultipartUpload may report an error with status 200.
    if (root === 'Error') return result;
    const expected = isSuccess ? ROOTS[operation] : undefined;
    if (expected !== undefined && root !== expected) {
      refuse(body.length === 0 ? 'it is empty' : `it has ${typeOf(headers)}, not ${expected}`);
    }
    // A missing object or upload has effects; other errors have none, whoever sends them.
    if (expected === undefined && body.length > 0 && (isSuccess || status === 404)) {
      refuse(`it has ${typeOf(headers)} and status ${status}`);
    }
    return result;
  };
}

function typeOf(headers: Readonly<Record<string, string>>): string {
  const { 'content-type': type = '' } = headers;
  return /html/.test(type) ? 'HTML' : `the content type ${JSON.stringify(type.slice(0, 80))}`;
}

/** Name of the root element of an XML document. */
function rootOf(body: Buffer): string | undefined {
  const start = body.subarray(0, 4096).toString('utf8');
  return /^\uFEFF?\s*(?:<[?!][^>]*>\s*)*<(?:[\w.-]+:)?([\w.-]+)/.exec(start)?.[1];
}
