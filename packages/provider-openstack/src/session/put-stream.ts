import { addAbortListener, once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { type HttpAnswer, textOf } from '@nodepool-builder/image-builder/module-kit';
import { OpenStackError } from '../openstack-error.ts';
import { keepReadingAfterEpipe } from './keep-reading-after-epipe.ts';
import { networkError } from './network-error.ts';

/** One PUT of a stream. */
export interface StreamPut {
  /** Cloud, method and path, for messages. */
  readonly name: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Each piece is taken only when the one before it is on the wire: its memory may be used again then. */
  readonly body: AsyncIterable<Buffer>;
  /** Bytes. */
  readonly size: number;
  /** Seconds in which no byte is taken, or no answer comes after the last one. */
  readonly stallTimeout: number;
  readonly agent: RequestOptions['agent'];
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a stream as fast as the server takes it, and no faster. An answer that comes while the body is still being
 * sent ends the sending. The connection and the body are closed afterwards, whatever happened; a body that is waiting
 * for its source then is waited for.
 *
 * Not by the HttpClient, that is got: this needs the socket, to read an answer that a write error would hide, and
 * streams without got's copies (measured by bench:upload).
 *
 * @throws OpenStackError `connection-failed`, `certificate-untrusted`, `invalid-answer`; `image-missing-on-disk` if the
 *   body is not `size` bytes long. An error of the body is thrown as it is.
 */
export async function putStream(put: StreamPut): Promise<HttpAnswer> {
  const { name, url, body, size, agent, stallTimeout, signal } = put;
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = open(url, { method: 'PUT', agent, headers: { ...put.headers, 'content-length': size } });
  request.once('socket', keepReadingAfterEpipe);
  request.on('error', () => undefined); // the first one reaches `receive`; after an answer they say nothing new

  let stall: NodeJS.Timeout | undefined;
  const giveUp = (): void => {
    request.destroy(new Error(`no byte taken and no answer given for ${stallTimeout} s`));
  };
  const watch = (): void => {
    clearTimeout(stall);
    stall = setTimeout(giveUp, stallTimeout * 1000);
  };

  let sent = 0;
  // not `for await`: that joins what has been read ahead, which copies it
  const wire = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, taken) {
      sent += chunk.length;
      if (sent > size) {
        taken(notItsSize(name, size));
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
        ended(notItsSize(name, size));
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
    watch();
    return { status: response.statusCode ?? 0, headers: response.headers, body: await textOf(response) };
  };

  const abort = signal && addAbortListener(signal, () => request.destroy(new Error('aborted')));
  const sending = pipeline(body, wire);
  try {
    const received = receive();
    const answer = await Promise.race([received, sending.then(() => received)]);
    // after a refusal nobody may read the rest: what is still to go out would wait for ever
    if (answer.status >= 300) return answer;
    if (sent < size) throw tooEarly(name, answer.status, sent, size);
    await sending; // the source may want to see its end, for its digests
    return answer;
  } finally {
    abort?.[Symbol.dispose]();
    clearTimeout(stall);
    request.destroy();
    wire.destroy();
    await sending.catch(() => undefined); // nobody has a piece of the body any more
  }
}

function tooEarly(name: string, status: number, sent: number, size: number): OpenStackError {
  return new OpenStackError('invalid-answer', `${name}: ${status} after ${sent} of ${size} bytes`, {
    status,
  });
}

function notItsSize(name: string, size: number): OpenStackError {
  const message = `${name}: the file is no longer ${size} bytes long; it was changed or cut while it was being sent`;
  return new OpenStackError('image-missing-on-disk', message, {
    cause: new ImageError('image-changed', message),
  });
}
