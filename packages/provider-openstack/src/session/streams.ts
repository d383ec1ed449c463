/* oxlint-disable eslint/no-underscore-dangle -- _write and _writev are how a Writable is implemented */
import { addAbortListener, once } from 'node:events';
import { type Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import type { HttpAnswer } from '@nodepool-builder/image-builder/module-kit';
import { CloudError } from '@nodepool-builder/image-builder/module-kit';
import { networkError } from './request-errors.ts';

/** Bytes of an answer's text; the rest of a longer one is not read. */
const LONGEST_TEXT = 1024 * 1024;

/** A GET of a stream. */
export interface StreamRead {
  /** Cloud, method and path, for messages. */
  readonly name: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Seconds without a byte after which the request fails; for a PUT also the limit for the answer. */
  readonly stallTimeout: number;
  /** Default: that of Node. */
  readonly agent?: Agent;
  readonly signal?: AbortSignal | undefined;
}

/** A PUT of a stream. */
export interface StreamPut extends StreamRead {
  /** The memory of a piece may be reused when the next one is requested. */
  readonly body: AsyncIterable<Buffer>;
  /** Bytes. */
  readonly size: number;
}

/** The start of an answer. */
export interface StreamAnswer {
  /** Its body is empty if the request succeeded. */
  readonly answer: HttpAnswer;
  /** Body of a success; the connection is closed when the iteration ends. */
  readonly body: AsyncIterable<Buffer>;
}

/**
 * Requests a stream, which is read no faster than the caller iterates.
 *
 * It does not use got, whose stream emits an error that ends the process if the connection is lost before the caller
 * iterates.
 *
 * @throws CloudError `connection-failed`, `certificate-untrusted`
 */
export async function readStream(read: StreamRead): Promise<StreamAnswer> {
  const { name, url, headers, agent, stallTimeout, signal } = read;
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    agent,
    headers,
    ...(signal && { signal }),
  });
  request.on('error', () => undefined); // `once` reports the first one, the response those after it
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
    return { answer: { status, headers: fields, body }, body: piecesOf(name, response) };
  } catch (error) {
    throw networkError(name, error);
  }
}

/**
 * Body of an answer, or the part of it that arrived in time and within the limit: the status matters more than an error
 * while reading.
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
      if (size > LONGEST_TEXT) break;
    }
  } catch {
    // the server closed the connection
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
 * Sends a stream as fast as the server reads it. An answer that arrives early ends the request. Afterwards the
 * connection and the body are closed; if the body is waiting for its source, this waits for it.
 *
 * It does not use got: it needs the socket, to read an answer that a write error would hide, and got copies each
 * piece (measured by bench:upload).
 *
 * @throws CloudError `connection-failed`, `certificate-untrusted`, `invalid-answer`; `image-missing-on-disk` if the
 *   body is not `size` bytes long; errors of the body unchanged
 */
export async function putStream(put: StreamPut): Promise<HttpAnswer> {
  const { name, url, body, size, agent, stallTimeout, signal } = put;
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    method: 'PUT',
    agent,
    headers: { ...put.headers, 'content-length': size },
  });
  request.once('socket', keepReadingAfterEpipe);
  request.on('error', () => undefined); // `receive` reports the first one; those after an answer do not matter

  let stall: NodeJS.Timeout | undefined;
  const giveUp = (): void => {
    request.destroy(new Error(`the server read no byte and gave no answer for ${stallTimeout} s`));
  };
  const watch = (): void => {
    clearTimeout(stall);
    stall = setTimeout(giveUp, stallTimeout * 1000);
  };

  let sent = 0;
  // not `for await`, which would copy by joining pieces that were read ahead
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
  const receive = async (): Promise<HttpAnswer> => {
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
    const answer = await Promise.race([received, sending.then(() => received)]);
    // after a refusal the server may not read the rest, so the body would never end
    if (answer.status >= 300) return answer;
    if (sent < size) {
      const message = `${name}: ${answer.status} after ${sent} of ${size} bytes`;
      throw new CloudError('invalid-answer', message, { status: answer.status });
    }
    await sending; // the source computes its digests at its end
    return answer;
  } finally {
    abort?.[Symbol.dispose]();
    clearTimeout(stall);
    request.destroy();
    wire.destroy();
    await sending.catch(() => undefined); // until no piece of the body is in use
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
 * a body early. The answer is then in our receive buffer, but the next write fails with EPIPE or ECONNRESET, and Node
 * would destroy the socket with the answer unread. The failed write stays pending instead; the end of the stream or the
 * owner's timeout ends the connection.
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
