import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorLine } from '../terms/command-error.ts';
import type { WebContext } from './context.ts';
import { html } from './html.ts';
import { statusOf } from './http-error.ts';
import { sendPage } from './layout.ts';
import { API } from './openapi.ts';

/** Headers of every response. Pages load nothing from other sites, run only our scripts, and cannot be framed. */
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

/** Rejects requests for other host names, sets the security headers, and hides internal errors. */
export function protect(server: FastifyInstance, context: WebContext): void {
  const { address, logger, options } = context;
  const fail = async (request: FastifyRequest, reply: FastifyReply, statusCode: number, reason: string) => {
    reply.code(statusCode);
    const isPage = request.headers.accept?.includes('text/html') && !request.url.startsWith(API);
    if (!isPage) return await reply.send({ error: reason });
    const content = html`<p class="card problem">${reason}</p><p><a href="/">Images</a></p>`;
    return await sendPage(context, request, reply, { title: `Error ${statusCode}`, content });
  };
  const isLoopback = LOOPBACK.test(isIP(address.host) === 6 ? `[${address.host}]` : address.host);
  const proxied = options.webUrl === undefined ? undefined : new URL(options.webUrl).hostname;
  server.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    // With DNS rebinding, an attacker's page resolves its name to 127.0.0.1, but still sends its own name.
    const name = hostNameOf(request.headers.host);
    if (isLoopback && name !== proxied && !LOOPBACK.test(name)) {
      const reason = `this page is not served as ${request.headers.host ?? 'a host without a name'}`;
      return await reply.code(421).send({ error: reason });
    }
  });
  server.setErrorHandler((error, request, reply) => {
    const statusCode = statusOf(error);
    if (statusCode === 500) logger.error(`${request.method} ${request.url}: ${errorLine(error)}`);
    const reason = statusCode === 500 ? 'internal error; see the log' : errorLine(error);
    return fail(request, reply, statusCode, reason);
  });
  server.setNotFoundHandler((request, reply) => fail(request, reply, 404, 'this page does not exist'));
}

/** Returns the Host header without its port, in lower case. */
function hostNameOf(host = ''): string {
  return host.replace(/:\d+$/, '').toLowerCase();
}
