import { readFile } from 'node:fs/promises';
import { formatAddress, JobServer, type JobServerOptions } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import type { Command } from 'commander';
import { loadAccessList } from '../configuration/option-files.ts';
import { stopCancelledJob } from '../daemon/stop-cancelled-job.ts';
import { openLogging } from '../logging/logging.ts';
import { defaultLogSettings } from '../logging/read-log-settings.ts';
import type { LogLevel } from '../logging/record-format.ts';
import { cancelWarning } from '../protocol/job-reply.ts';
import { errorLine, failing, usageError } from '../terms/command-error.ts';
import { portNumber, positiveInteger, wholeNumber } from '../terms/option-values.ts';
import { exampleOf, logLevelOption } from './options.ts';
import { stopSignal } from './stop-signal.ts';

type Limits = 'maxConnections' | 'maxPacketSize' | 'maxOutputBuffer' | 'maxTotalOutput';

interface GearmandOptions extends Pick<JobServerOptions, Limits | 'exceptions' | 'journal'> {
  readonly listen: string;
  readonly port: number;
  /** 0: no limit. */
  readonly jobRetries: number;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  /** Authority that must have signed clients' certificates. Without it, clients need no certificate. */
  readonly tlsCa?: string;
  readonly accessList?: string;
  readonly allowShutdown?: true;
  readonly logLevel?: LogLevel;
}

/** `gearmand`: runs the embedded job server in a process of its own. */
export function register(program: Command): void {
  program
    .command('gearmand')
    .description('Runs the Gearman job server of nodepool-builder until SIGTERM or SIGINT.')
    .option('-L, --listen <address>', 'address to listen on', '127.0.0.1')
    .option('-p, --port <port>', 'port to listen on', portNumber, 4730)
    .option(
      '-j, --job-retries <n>',
      'number of lost workers after which a job fails; 0: no limit',
      wholeNumber,
      0,
    )
    .option('--max-connections <n>', 'maximum number of connections', positiveInteger)
    .option('--max-packet-size <bytes>', 'maximum size of a packet; default: 64 MiB', positiveInteger)
    .option(
      '--max-output-buffer <bytes>',
      'maximum output to buffer for a peer that does not read; default: 64 MiB',
      positiveInteger,
    )
    .option(
      '--max-total-output <bytes>',
      'maximum output to buffer for all such peers together; default: 256 MiB',
      positiveInteger,
    )
    .option('--exceptions', 'send WORK_EXCEPTION to clients that did not request it')
    .option('-R, --round-robin', 'let the functions of a worker take turns; this server always does')
    .option('--journal <directory>', 'directory that keeps background jobs, so that they survive a crash')
    .addOption(logLevelOption('info'))
    .option('--tls-cert <file>', 'certificate; all connections then need TLS')
    .option('--tls-key <file>', 'private key of the certificate')
    .option('--tls-ca <file>', 'authority that must have signed the certificates of clients')
    .option('--access-list <file>', 'file with the rights of each client, by the name in its certificate')
    .option('--allow-shutdown', 'obey the admin commands "shutdown" and "shutdown graceful"')
    .addHelpText(
      'after',
      NOTES +
        exampleOf(
          'gearmand --journal /var/lib/gearmand --job-retries 3',
          'gearmand -L 0.0.0.0 --tls-cert server.pem --tls-key server.key --tls-ca ca.pem --access-list access.yaml',
        ),
    )
    .action(run);
}

const NOTES = `
An access list is a YAML file. It gives the common name of a certificate the
rights "submit", "register" and "administer", each with prefixes of function
names ("" stands for all). Everything else is refused:
  zuul.example.org: { submit: ["image-"] }
  builder.example.org: { register: ["image-"], submit: ["image-build:"] }
  operator: { submit: [""], register: [""], administer: [""] }

SIGHUP reloads the certificate, its key, the authority and the access list; no
connection is lost.
`;

async function run(options: GearmandOptions): Promise<void> {
  const { listen, port, jobRetries, allowShutdown, logLevel = 'info', ...others } = options;
  const { tlsCert, tlsKey: _key, tlsCa: _ca, accessList: _list, ...settings } = others;
  const security = await readSecurity(options);
  const logging = openLogging(defaultLogSettings(logLevel));
  const logger = logging.logger('gear.Server');
  const shutdown = Promise.withResolvers<'at once' | 'graceful'>();
  const server = new JobServer({
    ...settings,
    ...security,
    logger,
    maxAttempts: jobRetries === 0 ? undefined : jobRetries,
    onCancel: (job) => {
      if (job.isRunning && tlsCert !== undefined) {
        const reason = 'this server has no certificate with which it could notify the builder';
        logger.warn(`job ${job.handle} of ${job.function} is cancelled, but may still run: ${reason}`);
      } else void stopCancelledJob(job, server.address ?? { host: listen, port }, logger); // never rejects
      return cancelWarning(job);
    },
    onShutdown: allowShutdown && ((graceful) => shutdown.resolve(graceful ? 'graceful' : 'at once')),
  });
  const stop = stopSignal();
  const onHangup = (): void => void reloadSecurity(server, options, logger);
  process.on('SIGHUP', onHangup);
  try {
    const address = await server.listen(port, listen);
    console.log(`gearmand listens on ${formatAddress(address)}`);
    const request = await Promise.race([stop.requested, shutdown.promise]);
    // A stop signal does not wait for running jobs.
    if (request === 'graceful') await Promise.race([server.drain(), stop.requested]);
  } finally {
    process.off('SIGHUP', onHangup);
    stop.close();
    await server.close();
    await logging.close();
  }
}

/** Settings for access to the server. */
type Security = Pick<JobServerOptions, 'tls' | 'access'>;

/** @throws CommandError; ConfigurationError for an invalid access list */
async function readSecurity(options: GearmandOptions): Promise<Security> {
  const { accessList, tlsCa } = options;
  if (accessList !== undefined && tlsCa === undefined) {
    throw usageError(
      'an access list uses the names in clients’ certificates; give --tls-ca with --access-list',
    );
  }
  const access = accessList === undefined ? undefined : await loadAccessList(accessList);
  return { tls: await readTls(options), access };
}

/** @throws CommandError for a certificate without its key, or the reverse, and for a file that cannot be read */
async function readTls({ tlsCert, tlsKey, tlsCa }: GearmandOptions) {
  if ([tlsCert, tlsKey, tlsCa].every((file) => file === undefined)) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw usageError('TLS requires a certificate and its key; give both --tls-cert and --tls-key');
  }
  const [cert, key] = await Promise.all([readPem(tlsCert), readPem(tlsKey)]);
  if (tlsCa === undefined) return { cert, key, requestCert: false };
  return { cert, key, ca: await readPem(tlsCa), requestCert: true };
}

async function readPem(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch(failing(`cannot read "${file}"`, 'name a PEM file'));
}

/** Reloads the settings. If one of them is invalid, it logs the error and keeps the old ones. */
async function reloadSecurity(server: JobServer, options: GearmandOptions, logger: Logger): Promise<void> {
  try {
    const { tls, access } = await readSecurity(options);
    if (!tls) return;
    server.setSecureContext(tls);
    if (access) server.setAccess(access);
    logger.info(`reloaded the certificate${access ? ' and the access list' : ''}`);
  } catch (error) {
    logger.error(errorLine(error));
  }
}
