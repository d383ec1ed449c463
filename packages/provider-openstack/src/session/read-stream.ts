import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { type HttpAnswer, textOf } from '@nodepool-builder/image-builder/module-kit';
import { networkError } from './network-error.ts';

/** One GET of a stream. */
export interface StreamRead {
  /** Cloud, method and path, for messages. */
  readonly name: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Seconds in which no byte comes. */
  readonly stallTimeout: number;
  readonly agent: RequestOptions['agent'];
  readonly signal?: AbortSignal | undefined;
}

/** An answer that has begun. */
export interface StreamAnswer {
  /** With a body unless it is a success. */
  readonly answer: HttpAnswer;
  /** Of a success; the connection is closed when the iteration ends. */
  readonly body: AsyncIterable<Buffer>;
}

/**
 * Asks for a stream, and reads no faster than it is used.
 *
 * @throws OpenStackError `connection-failed`, `certificate-untrusted`
 */
export async function readStream(read: StreamRead): Promise<StreamAnswer> {
  const { name, url, agent, headers, stallTimeout, signal } = read;
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = open(url, { agent, headers, ...(signal && { signal }) });
  const stalled = new Error(`nothing came for ${stallTimeout} s`);
  request.setTimeout(stallTimeout * 1000, () => request.destroy(stalled));
  // Destroying only the request would give the reader of the response no reason.
  request.on('response', (response) => request.on('timeout', () => response.destroy(stalled)));
  request.end();
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const { statusCode: status = 0, headers: fields } = response;
    const isSuccess = status >= 200 && status < 300;
    const body = isSuccess ? '' : await textOf(response);
    return { answer: { status, headers: fields, body }, body: piecesOf(name, response) };
  } catch (error) {
    throw networkError(name, error);
  } finally {
    request.on('error', () => {}); // told by the response from now on
  }
}

async function* piecesOf(name: string, response: IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* response as AsyncIterable<Buffer>;
  } catch (error) {
    throw networkError(name, error);
  }
}
