import { readBounded } from '@nodepool-builder/image-builder/internal';
import { cloudError, responseMeter } from '@nodepool-builder/image-builder/plugin';
import type { DeserializeMiddleware, HttpResponse } from '@smithy/types';

/** Root element of each response with a document. Other responses are empty or contain the bytes of an object. */
const ROOTS: Readonly<Record<string, string>> = {
  ListObjectsV2: 'ListBucketResult',
  ListParts: 'ListPartsResult',
  ListMultipartUploads: 'ListMultipartUploadsResult',
  CreateMultipartUpload: 'InitiateMultipartUploadResult',
  CompleteMultipartUpload: 'CompleteMultipartUploadResult',
};

/** Operations whose responses always have an ETag. */
const WITH_ETAG: ReadonlySet<string> = new Set(['GetObject', 'HeadObject', 'PutObject', 'UploadPart']);

/** Position of {@link checkResponse} in the middleware stack: next to the connection, before the SDK parses. */
export const CHECK_PLACE = { name: 'checkResponse', step: 'deserialize', priority: 'low' } as const;

/**
 * Creates a middleware that rejects any response that does not come from S3, such as a proxy's page, which the SDK
 * would parse as an empty list. It also limits how much the SDK reads into memory.
 */
export function checkResponse<I extends object, O extends object>(
  subject: string,
): DeserializeMiddleware<I, O> {
  return (next, context) => async (args) => {
    const operation = String(context.commandName).replace(/Command$/, '');
    const refuse = (reason: string): never => {
      throw cloudError(
        'invalid-response',
        `${subject}: ${operation}`,
        `this is not an S3 response: ${reason}`,
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
    // The provider acts on a missing object or upload. Other errors change nothing, whoever sends them.
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

/** Returns the name of an XML document's root element. */
function rootOf(body: Buffer): string | undefined {
  const start = body.subarray(0, 4096).toString('utf8');
  return /^\uFEFF?\s*(?:<[?!][^>]*>\s*)*<(?:[\w.-]+:)?([\w.-]+)/.exec(start)?.[1];
}
