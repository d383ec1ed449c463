import { once } from 'node:events';
import { createServer, get as getHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { get as getHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { atMirror, type DebianMirror } from './quickstart/debian-mirror.ts';
import { debianMirror } from './quickstart/machine.ts';

/** A proxy on loopback for `http_proxy`. */
export interface DebianProxy extends AsyncDisposable {
  readonly url: string;
}

/**
 * Starts a proxy that fetches Debian packages from the mirror in this machine's apt configuration, which may be the
 * only reachable one. Builds use Debian's own host names, and images keep them.
 */
export async function startDebianProxy(): Promise<DebianProxy> {
  const mirror = await debianMirror();
  const server = createServer((request, response) => forward(request, response, mirror));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function forward(request: IncomingMessage, response: ServerResponse, mirror: DebianMirror): void {
  const url = atMirror(request.url ?? '', mirror);
  const { host: _, ...headers } = request.headers;
  const get = url.startsWith('https:') ? getHttps : getHttp;
  const upstream = get(url, { headers }, (found) => {
    response.writeHead(found.statusCode ?? 502, found.headers);
    pipeline(found, response, () => {}); // Either side may end early.
  });
  upstream.on('error', ({ message }) => response.writeHead(502).end(message));
}
