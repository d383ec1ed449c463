import { type FastifyInstance, fastify } from 'fastify';
import type { WebContext } from './context.ts';
import { pages } from './pages.ts';
import { protect } from './protection.ts';

/** A part of the server: adds its addresses. */
type Part = (server: FastifyInstance, context: WebContext) => void;

const PARTS: readonly Part[] = [pages];

/** Largest body of a request, in bytes. */
const BODY_LIMIT = 65_536;

/** Creates the server; the caller lets it listen. Closing ends all requests, those for events too. */
export function createServer(context: WebContext): FastifyInstance {
  const server = fastify({ bodyLimit: BODY_LIMIT, forceCloseConnections: true });
  // Answers are not cut to their schemas: the tests compare both.
  server.setSerializerCompiler(() => (data) => JSON.stringify(data));
  protect(server, context);
  for (const part of PARTS) part(server, context);
  return server;
}
