import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Bytes that a disk's double reads: the footer. */
const TAIL = 512;

interface Blob {
  readonly size: number;
  tail: Buffer;
}

/** Server for page blobs that counts page bytes, and keeps the last page of each blob. */
export class PageSink {
  readonly account: string = 'sink';
  readonly key: string = Buffer.from('key').toString('base64');
  /** Page bytes received so far. */
  received = 0;
  readonly #blobs = new Map<string, Blob>();
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  });

  async start(): Promise<void> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.url);
    const { method, headers } = request;
    const tail = await this.#read(request, url.searchParams.get('comp') === 'page');
    const range = /bytes=(\d+)-(\d+)/.exec(String(headers['x-ms-range'] ?? headers.range ?? ''));
    const blob = this.#blobs.get(url.pathname);
    const answer = { 'last-modified': new Date().toUTCString(), etag: '"0x1"', 'x-ms-version': '2026-10-06' };
    if (method === 'PUT' && headers['x-ms-blob-content-length'] !== undefined) {
      this.#blobs.set(url.pathname, {
        size: Number(headers['x-ms-blob-content-length']),
        tail: Buffer.alloc(TAIL),
      });
    }
    if (method === 'PUT') {
      if (blob !== undefined && range !== null && Number(range[2]) === blob.size - 1) blob.tail = tail;
      response.writeHead(url.searchParams.get('comp') === 'acl' ? 200 : 201, answer).end();
    } else if (method === 'DELETE') {
      this.#blobs.delete(`${url.pathname}/abcd`);
      response.writeHead(202, answer).end();
    } else if (method === 'HEAD') {
      const type = { 'x-ms-blob-type': 'PageBlob', 'content-length': blob?.size ?? 0 };
      response.writeHead(200, { ...answer, ...type }).end();
    } else {
      const place = `bytes ${range?.[1]}-${range?.[2]}/${blob?.size}`;
      const type = { 'x-ms-blob-type': 'PageBlob', 'content-length': TAIL, 'content-range': place };
      response.writeHead(206, { ...answer, ...type }).end(blob?.tail);
    }
  }

  /** Returns the end of the body. */
  async #read(request: IncomingMessage, isPage: boolean): Promise<Buffer> {
    let last: Buffer = Buffer.alloc(0);
    for await (const chunk of request as AsyncIterable<Buffer>) {
      if (isPage) this.received += chunk.length;
      last = chunk;
    }
    return last.subarray(-TAIL);
  }
}
