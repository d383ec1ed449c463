import cookie from '@fastify/cookie';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { errnoOf } from '@nodepool-builder/image-builder/internal';
import { type FastifyInstance, fastify } from 'fastify';
import type { Configuration } from '../configuration/configuration.ts';
import type { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import { CommandError, errorLine } from '../terms/command-error.ts';
import { printable } from '../terms/printable.ts';
import { Access } from './access.ts';
import { api } from './api.ts';
import { assets } from './assets.ts';
import { CloudImageWatch } from './cloud-image-watch.ts';
import type { WebContext } from './context.ts';
import type { EventMetrics } from './event-metrics.ts';
import { logs } from './logs.ts';
import { metrics } from './metrics.ts';
import { nodepoolAddresses } from './nodepool-addresses.ts';
import { serveOpenApi } from './openapi.ts';
import { pages } from './pages.ts';
import { protect } from './protection.ts';
import { SiteView } from './site-view.ts';
import { type WebOptions, webAddress } from './web-options.ts';

/** Settings of {@link startWebService}. */
export interface WebServiceOptions {
  readonly options: WebOptions;
  readonly configuration: Configuration;
  readonly servers: readonly ServerAddress[];
  readonly logger: (name: string) => Logger;
  readonly events: EventMetrics;
  /** The builder of this process. */
  readonly builder?: NodepoolBuilder;
}

/**
 * Serves the status page, the API and the metrics.
 *
 * @throws CommandError if it cannot listen, or the token cannot be read
 */
export async function startWebService(site: WebServiceOptions) {
  const { options, events, builder } = site;
  const { web = '' } = options;
  const address = webAddress(web);
  const access = await Access.open(options);
  const logger = site.logger('nodepool.web');
  const { configuration, servers } = site;
  const cloudImages = new CloudImageWatch({ configuration, logger });
  const view = new SiteView(configuration, servers, cloudImages, logger);
  const server = await createServer({ view, access, logger, address, options, events, builder });
  /** Ends all requests and events, and closes the port. */
  const close = async (): Promise<void> => {
    await server.close();
    await view.close();
    await cloudImages.close();
  };
  try {
    logger.info(`status page at ${await server.listen(address)}`);
    return {
      reload: (changed: Configuration): void => {
        view.reload(changed);
        cloudImages.reload(changed);
        void events.configure(changed);
      },
      /** Shows why a changed configuration is not in force, until the next reload. */
      refuse: (problem: string): void => view.refuse(problem),
      close,
    };
  } catch (error) {
    await close();
    const isTaken = errnoOf(error) === 'EADDRINUSE';
    const remedy = `${isTaken ? 'stop the program that listens there, or ' : ''}choose another address with --web`;
    throw new CommandError(
      `the status page cannot listen on ${web}: ${errorLine(error)}; ${remedy}`,
      'refused',
      { cause: error },
    );
  }
}

/** The parts of the server. Each adds its routes. */
const PARTS = [api, assets, logs, metrics, nodepoolAddresses, pages];

/** Maximum size of a request body in bytes. */
const BODY_LIMIT = 65_536;

/** Creates the server, on which the caller then listens. Closing it ends all requests, including event streams. */
async function createServer(context: WebContext): Promise<FastifyInstance> {
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
