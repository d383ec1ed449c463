/* oxlint-disable eslint/no-underscore-dangle -- _write and _writev are how a Writable is implemented */
import { addAbortListener, once } from 'node:events';
import { type Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { CloudError, type HttpResponse } from '@nodepool-builder/image-builder/plugin';
import { networkError } from './request-errors.ts';

/** Max bytes of a response text; the rest of a longer text is not read. */
const MAX_TEXT_SIZE = 1024 * 1024;

/** A GET of a stream. */
export interface StreamRead {
  /** Cloud, method and path, for messages. */
  readonly name: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Seconds without a byte after which the request fails. For a PUT, also the time limit for the response. */
  readonly stallTimeout: number;
  /** Agent of the connection. Default: Node's global agent. */
  readonly agent?: Agent;
  readonly signal?: AbortSignal | undefined;
}

/** A PUT of a stream. */
export interface StreamPut extends StreamRead {
  /** Chunks to send. A chunk's memory may be reused when the next chunk is requested. */
  readonly body: AsyncIterable<Buffer>;
  /** Bytes. */
  readonly size: number;
}

/** Start of a response. */
export interface StreamResponse {
  /** Response whose body is empty if the request succeeded. */
  readonly response: HttpResponse;
  /** Body of a successful response. The connection is closed when the iteration ends. */
  readonly body: AsyncIterable<Buffer>;
}

/**
 * Requests a stream, which is read no faster than the caller iterates.
 *
 * Does not use got, because a got stream emits an error that ends the process if the connection is lost before the
 * caller iterates.
 *
 * @throws CloudError `connection-failed`, `certificate-untrusted`
 */
export async function readStream(read: StreamRead): Promise<StreamResponse> {
  const { name, url, headers, agent, stallTimeout, signal } = read;
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    agent,
    headers,
    ...(signal && { signal }),
  });
  request.on('error', () => undefined); // `once` reports the first error, the response reports later errors.
  const stalled = new Error(`the server sent no byte for ${stallTimeout} s`);
  request.setTimeout(stallTimeout * 1000, () => request.destroy(stalled));
  // Destroying only the request would give the reader of the response no reason.
  request.on('response', (response) => request.on('timeout', () => response.destroy(stalled)));
  request.end();
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const { statusCode: status = 0, headers: fields } = response;
    const isSuccess = status >= 200 && status < 300;
    const body = isSuccess ? '' : await textOf(response, stallTimeout);
    return { response: { status, headers: fields, body }, body: piecesOf(name, response) };
  } catch (error) {
    throw networkError(name, error);
  }
}

/**
 * Reads the body of a response, up to the limit and the timeout. Errors while reading are ignored, because the status
 * matters more.
 *
 * @param timeout seconds
 */
async function textOf(response: IncomingMessage, timeout: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => response.destroy(), timeout * 1000);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_TEXT_SIZE) break;
    }
  } catch {
    // The server may have closed the connection.
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString();
}

async function* piecesOf(name: string, stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* stream;
  } catch (error) {
    throw networkError(name, error);
  }
}

/**
 * Sends a stream as fast as the server reads it. A response that arrives early ends the request. Afterwards the
 * connection and the body are closed. If the body is waiting for its source, this function waits for it.
 *
 * Does not use got, for two reasons: reading a response that a write error would hide needs the socket, and got copies
 * each chunk (measured by bench:upload).
 *
 * @throws CloudError `connection-failed`, `certificate-untrusted`, `invalid-response`; `image-missing-on-disk` if the
 * body is not `size` bytes long; errors of the body unchanged
 */
export async function putStream(put: StreamPut): Promise<HttpResponse> {
  const { name, url, body, size, agent, stallTimeout, signal } = put;
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    method: 'PUT',
    agent,
    headers: { ...put.headers, 'content-length': size },
  });
  request.once('socket', keepReadingAfterEpipe);
  request.on('error', () => undefined); // `receive` reports the first error; errors after a response do not matter.

  let stall: NodeJS.Timeout | undefined;
  const giveUp = (): void => {
    request.destroy(new Error(`the server read no byte and sent no response for ${stallTimeout} s`));
  };
  const watch = (): void => {
    clearTimeout(stall);
    stall = setTimeout(giveUp, stallTimeout * 1000);
  };

  let sent = 0;
  // `for await` would copy data by joining chunks that were read ahead.
  const wire = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, taken) {
      sent += chunk.length;
      if (sent > size) {
        taken(sizeChanged(name, size));
        return;
      }
      watch();
      request.write(chunk, (error) => {
        clearTimeout(stall);
        if (!error) taken();
      });
    },
    final(ended) {
      if (sent < size) {
        ended(sizeChanged(name, size));
        return;
      }
      watch();
      request.end();
      ended();
    },
  });
  const receive = async (): Promise<HttpResponse> => {
    const [response] = (await once(request, 'response').catch((error: unknown) => {
      throw networkError(name, error);
    })) as [IncomingMessage];
    clearTimeout(stall);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: await textOf(response, stallTimeout),
    };
  };

  const abort = signal && addAbortListener(signal, () => request.destroy(new Error('aborted')));
  const sending = pipeline(body, wire);
  try {
    const received = receive();
    const response = await Promise.race([received, sending.then(() => received)]);
    // After an error response, the server may not read the rest, and the body would never end.
    if (response.status >= 300) return response;
    if (sent < size) {
      const message = `${name}: ${response.status} after ${sent} of ${size} bytes`;
      throw new CloudError('invalid-response', message, { status: response.status });
    }
    await sending; // The source computes its digests at the end.
    return response;
  } finally {
    abort?.[Symbol.dispose]();
    clearTimeout(stall);
    request.destroy();
    wire.destroy();
    await sending.catch(() => undefined); // Wait until no chunk of the body is in use.
  }
}

function sizeChanged(name: string, size: number): CloudError {
  const message = `${name}: the file is no longer ${size} bytes long: it changed while it was sent`;
  return new CloudError('image-missing-on-disk', message, {
    cause: new ImageError('image-changed', message),
  });
}

type Written = (error?: Error | null) => void;

/**
 * Keeps a socket readable after a failed write. uwsgi, which runs Glance, closes the connection at once when it refuses
 * a body early. The response is then in our receive buffer, but the next write fails with EPIPE or ECONNRESET, and Node
 * would destroy the socket before the response is read. This function keeps the failed write pending instead. The end
 * of the stream or the owner's timeout ends the connection.
 */
export function keepReadingAfterEpipe(socket: Socket): void {
  const write = socket._write.bind(socket);
  socket._write = (chunk, encoding, written) => write(chunk, encoding, unlessFailed(written));
  const writev = socket._writev?.bind(socket);
  if (writev !== undefined) socket._writev = (chunks, written) => writev(chunks, unlessFailed(written));
}

function unlessFailed(written: Written): Written {
  return (error) => {
    if (!error) written();
  };
}
