import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { formatAddress, GearmanError, JobServer, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import type { Configuration, GearmanServer, GearmanTls } from '../configuration/configuration.ts';

/** Where the embedded job server listens if the configuration says nothing. */
const DEFAULT_ADDRESS: ServerAddress & { readonly port: number } = { host: '127.0.0.1', port: 4730 };

const LOOPBACK = /^(localhost|::1|127(\.\d+){3})$/;

/** The job servers of a configuration; the embedded one stands in for none. */
export function jobServers(configuration: Configuration): readonly ServerAddress[] {
  const { gearmanServers } = configuration;
  return gearmanServers.length > 0 ? gearmanServers.map(toAddress) : [DEFAULT_ADDRESS];
}

function toAddress({ host, port, tls }: GearmanServer): ServerAddress {
  return tls === undefined ? { host, port } : { host, port, tls: () => readTls(tls) };
}

/** Reads the files at each connection, so that renewed certificates count from the next one on. */
function readTls({ ca, cert, key, serverName }: GearmanTls): ConnectionOptions {
  return {
    ...(ca !== undefined && { ca: readFileSync(ca) }),
    ...(cert !== undefined && { cert: readFileSync(cert) }),
    ...(key !== undefined && { key: readFileSync(key) }),
    ...(serverName !== undefined && { servername: serverName }),
  };
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
 * @throws GearmanError `invalid-argument` if the configuration asks for TLS
 * @throws Error if the port is taken.
 */
export async function startEmbeddedGearmand(
  configuration: Configuration,
  logger: Logger,
): Promise<EmbeddedGearmand> {
  const configured = jobServers(configuration);
  const address = configured.find(({ host }) => LOOPBACK.test(host)) ?? DEFAULT_ADDRESS;
  if (address.tls !== undefined) {
    throw new GearmanError(
      'invalid-argument',
      `the embedded job server at ${formatAddress(address)} speaks no TLS; remove ssl-ca, ssl-cert and ssl-key of it ` +
        'under gearman-servers, or run "nodepool-builder gearmand --tls-cert FILE --tls-key FILE" in its place',
    );
  }
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
