import { formatAddress, GearmanError, JobServer, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import type { Configuration } from '../configuration/configuration.ts';
import { EMBEDDED_SERVER, jobServers } from '../configuration/gearman-server.ts';
import { cancelWarning } from '../protocol/job-reply.ts';
import { stopCancelledJob } from './stop-cancelled-job.ts';

const LOOPBACK = /^(localhost|::1|127(\.\d+){3})$/;

/**
 * Starts the embedded job server at the first loopback entry of `gearman-servers`, where each client with the same file
 * finds it, or else at 127.0.0.1:4730. It never listens on another interface.
 *
 * @returns the job server, and all servers for the workers
 * @throws GearmanError `invalid-argument` if the configuration enables TLS; `listen-failed`
 */
export async function startEmbeddedGearmand(
  configuration: Configuration,
  logger: Logger,
): Promise<{ readonly jobServer: JobServer; readonly servers: readonly ServerAddress[] }> {
  const configured = jobServers(configuration);
  const address = configured.find(({ host }) => LOOPBACK.test(host)) ?? EMBEDDED_SERVER;
  if (address.tls !== undefined) {
    throw new GearmanError(
      'invalid-argument',
      `the embedded job server at ${formatAddress(address)} does not support TLS; remove its ssl-ca, ssl-cert and ` +
        'ssl-key from gearman-servers, or run "nodepool-builder gearmand --tls-cert FILE --tls-key FILE" instead',
    );
  }
  const jobServer = new JobServer({
    logger,
    onCancel: (job) => {
      void stopCancelledJob(job, address, logger); // never rejects
      return cancelWarning(job);
    },
  });
  await jobServer.listen(address.port, address.host);
  const others = configured.filter((server) => server !== address);
  return { jobServer, servers: [address, ...others] };
}
