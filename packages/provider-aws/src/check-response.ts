import { Readable } from 'node:stream';
import { readBounded } from '@nodepool-builder/image-builder/internal';
import { cloudError, responseMeter } from '@nodepool-builder/image-builder/plugin';
import type { DeserializeMiddleware, HttpResponse } from '@smithy/types';

/** Root elements of S3 lists. */
const S3_ROOTS: Readonly<Record<string, string>> = {
  ListObjectsV2: 'ListBucketResult',
  ListMultipartUploads: 'ListMultipartUploadsResult',
};

/** Returns the expected start of a service's response to an operation. */
export type ResponseStart = (operation: string) => RegExp | undefined;

/** Names the root element of an EC2 response after the operation. */
export const EC2_START: ResponseStart = (operation) => xml(`${operation}Response`);

export const EBS_START: ResponseStart = (operation) =>
  operation === 'GetSnapshotBlock' ? undefined : /^\s*\{/;

export const S3_START: ResponseStart = (operation) => {
  const root = S3_ROOTS[operation];
  return root === undefined ? undefined : xml(root);
};

/** Position of {@link checkResponse} in the middleware stack: next to the connection, before the SDK parses. */
export const CHECK_PLACE = { name: 'checkResponse', step: 'deserialize', priority: 'low' } as const;

/**
 * Creates a middleware that rejects any response that does not come from AWS, such as a proxy's page, which the SDK
 * would parse as an empty list. It also limits how much the SDK reads into memory.
 */
export function checkResponse<I extends object, O extends object>(
  provider: string,
  start: ResponseStart,
): DeserializeMiddleware<I, O> {
  return (next, context) => async (args) => {
    const operation = String(context.commandName).replace(/Command$/, '');
    const subject = `provider ${provider}: ${operation}`;
    const result = await next(args);
    const response = result.response as HttpResponse;
    const { statusCode: status, headers } = response;
    const body = await readBounded(
      (response.body ?? []) as AsyncIterable<Uint8Array>,
      responseMeter(subject),
    );
    response.body = Readable.from(body.length === 0 ? [] : [body]);
    if (status < 200 || status >= 300) return result;
    const type = headers['content-type'] ?? '';
    // Some object stores label an empty response as HTML.
    const isPage = body.length > 0 && /\bhtml\b/.test(type);
    const isWrong = isPage || start(operation)?.test(body.toString('latin1', 0, 4096)) === false;
    if (!isWrong) return result;
    const shown = body.length === 0 ? 'empty' : `of type ${JSON.stringify(type.slice(0, 80))}`;
    throw cloudError('invalid-response', subject, `the response is ${shown}, which AWS never sends`);
  };
}

/** Matches the beginning of a document with this root element. */
function xml(root: string): RegExp {
  return new RegExp(`^(?:\\xEF\\xBB\\xBF)?\\s*(?:<[?!][^>]*>\\s*)*<${root}[\\s/>]`);
}
