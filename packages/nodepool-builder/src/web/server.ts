import cookie from '@fastify/cookie';
import { type FastifyInstance, fastify } from 'fastify';
import { printable } from '../terms/printable.ts';
import { api } from './api.ts';
import { assets } from './assets.ts';
import type { WebContext } from './context.ts';
import { logs } from './logs.ts';
import { metrics } from './metrics.ts';
import { nodepoolAddresses } from './nodepool-addresses.ts';
import { serveOpenApi } from './openapi.ts';
import { pages } from './pages.ts';
import { protect } from './protection.ts';

/** A part of the server, which adds its routes. */
type Part = (server: FastifyInstance, context: WebContext) => void;

const PARTS: readonly Part[] = [api, assets, logs, metrics, nodepoolAddresses, pages];

/** Maximum size of a request body in bytes. */
const BODY_LIMIT = 65_536;

/** Creates the server, on which the caller then listens. Closing it ends all requests, including event streams. */
export async function createServer(context: WebContext): Promise<FastifyInstance> {
  const server = fastify({
    bodyLimit: BODY_LIMIT,
    // Query values are text, and numbers are parsed from it. A list is not text, even if it has one item.
    ajv: { customOptions: { coerceTypes: true } },
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 512 },
  });
  // Responses are not cut to their schemas, because the tests compare both.
  server.setSerializerCompiler(() => toJson);
  server.setReplySerializer(toJson);
  await server.register(cookie);
  protect(server, context);
  serveOpenApi(server);
  for (const part of PARTS) part(server, context);
  return server;
}

function toJson(data: unknown): string {
  return printable(JSON.stringify(data));
}
