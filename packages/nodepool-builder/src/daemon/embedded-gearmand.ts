import { formatAddress, JobServer, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import type { Configuration } from '../configuration/configuration.ts';

/** Where the embedded job server listens if the configuration says nothing. */
const DEFAULT_ADDRESS = { host: '127.0.0.1', port: 4730 };

const LOOPBACK = /^(localhost|::1|127(\.\d+){3})$/;

/** The job servers of a configuration; the embedded one stands in for none. */
export function jobServers(configuration: Configuration): readonly ServerAddress[] {
  return configuration.gearmanServers.length > 0 ? configuration.gearmanServers : [DEFAULT_ADDRESS];
}

/** A job server of this process, and the servers that its workers then serve. */
export interface EmbeddedGearmand {
  readonly jobServer: JobServer;
  readonly servers: readonly ServerAddress[];
}

/**
 * Starts the embedded job server: where the first loopback entry of `gearman-servers` says, so that every
 * client that reads the same file finds it, else on 127.0.0.1:4730. It never listens on another interface.
 *
 * @throws Error if the port is taken.
 */
export async function startEmbeddedGearmand(
  configuration: Configuration,
  logger: Logger,
): Promise<EmbeddedGearmand> {
  const configured = configuration.gearmanServers;
  const address = configured.find(({ host }) => LOOPBACK.test(host)) ?? DEFAULT_ADDRESS;
  const jobServer = new JobServer({ logger });
  try {
    await jobServer.listen(address.port, address.host);
  } catch (error) {
    const remedy = 'stop what listens there, or name another port under gearman-servers';
    throw new Error(`the embedded job server cannot listen on ${formatAddress(address)}; ${remedy}`, {
      cause: error,
    });
  }
  const others = configured.filter((server) => server !== address);
  return { jobServer, servers: [address, ...others] };
}
