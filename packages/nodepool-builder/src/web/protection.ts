import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { messageOf } from '../commands/output.ts';
import type { WebContext } from './context.ts';

/** Headers of every answer: the pages load nothing from elsewhere, run only our files, and stand in no frame. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
};

const LOOPBACK = /^(localhost|\[::1\]|127(\.\d+){3})$/;

/** Refuses requests for other names, sets the headers of security, and hides internal errors. */
export function protect(server: FastifyInstance, { address, logger }: WebContext): void {
  const isLoopback = LOOPBACK.test(isIP(address.host) === 6 ? `[${address.host}]` : address.host);
  server.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    // A page of elsewhere whose name an attacker lets resolve to 127.0.0.1 sends its own name.
    if (isLoopback && !LOOPBACK.test(hostNameOf(request.headers.host))) {
      const reason = `this page is not served as ${request.headers.host ?? 'a host without a name'}`;
      return await reply.code(421).send({ error: reason });
    }
  });
  server.setErrorHandler((error: { statusCode?: number }, request, reply) => {
    const { statusCode = 500 } = error;
    if (statusCode >= 500) logger.error(`${request.method} ${request.url}: ${messageOf(error)}`);
    const reason = statusCode >= 500 ? 'internal error; the log has the reason' : messageOf(error);
    return reply.code(statusCode).send({ error: reason });
  });
  server.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'there is no such page' }));
}

/** The Host header without its port, in lower case. */
function hostNameOf(host = ''): string {
  return host.replace(/:\d+$/, '').toLowerCase();
}
