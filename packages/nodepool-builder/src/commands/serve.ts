import { appendFileSync } from 'node:fs';
import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { formatBytes } from '@nodepool-builder/image-builder/internal';
import { type Closer, closeAll } from '../daemon/close-all.ts';
import { startManagerService } from '../daemon/manager-service.ts';
import { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import { backgroundLogSettings, defaultLogSettings } from '../logging/read-log-settings.ts';
import type { LogLevel } from '../logging/record-format.ts';
import { errorLine } from '../terms/command-error.ts';
import { exitReasonOf } from '../terms/exit-codes.ts';
import { counted } from '../terms/units.ts';
import { packageVersion } from '../terms/version.ts';
import { openEventMetrics, type WebOptions } from '../web/web-options.ts';
import { reportToForeground } from './background.ts';
import { writePidFile } from './pid-file.ts';
import { runService, type Service, type ServiceOptions, type ServiceSite, startWeb } from './service.ts';

/** Settings of {@link serve}. */
export interface ServeOptions
  extends Pick<ServiceOptions, 'config' | 'loggingConfig' | 'secure' | 'modules'>,
    WebOptions {
  readonly pidfile?: string;
  /** Level of the log. Default `debug`; ignored with a logging configuration. */
  readonly logLevel?: LogLevel;
  /** Path of the log of a background process. It gets everything without a logging configuration, else only crashes. */
  readonly inBackground?: string;
  readonly buildWorkers: number;
  readonly uploadWorkers: number;
  readonly embeddedGearmand?: true;
  /** Seconds for which instances of failed builds are kept, regardless of the configuration. */
  readonly keepOnFailure?: number;
  /** True to also run a job server and the manager. */
  readonly allInOne?: true;
}

/**
 * Serves until SIGTERM or SIGINT, then finishes the running jobs.
 *
 * @throws ConfigurationError, CommandError, ImageError if it cannot start
 */
export async function serve(options: ServeOptions): Promise<void> {
  // puppet-nodepool's restart sends SIGUSR1 right after SIGINT. Without a handler, it would end the process.
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {});
  if (options.inBackground !== undefined) logCrash(options.inBackground);
  try {
    await runBuilder(options);
  } catch (error) {
    await reportToForeground({ error: errorLine(error), exitReason: exitReasonOf(error) });
    throw error;
  }
}

async function runBuilder(options: ServeOptions): Promise<void> {
  const { pidfile, inBackground, embeddedGearmand, allInOne, logLevel } = options;
  const level = logLevel ?? 'debug';
  const defaultLog =
    inBackground === undefined
      ? defaultLogSettings(level, logLevel === 'debug')
      : backgroundLogSettings(level, inBackground);
  let removePidFile: (() => Promise<void>) | undefined;
  const start = async (site: ServiceSite): Promise<Service> => {
    if (pidfile !== undefined) removePidFile = await writePidFile(pidfile);
    const logger = site.logger('nodepool.builder');
    const events = await openEventMetrics(options, site.configuration, allInOne === true);
    const builder = await NodepoolBuilder.start({
      ...site,
      onEvent: events?.onJobEvent,
      buildWorkers: options.buildWorkers,
      uploadWorkers: options.uploadWorkers,
      keepOnFailure: options.keepOnFailure,
      ...((embeddedGearmand || allInOne) && { embeddedGearmand: true }),
    });
    const closers: Closer[] = [() => builder.close()];
    try {
      const { servers, repository } = builder;
      const manager = allInOne
        ? await startManagerService({ ...site, servers, onEvent: events?.onManagerEvent })
        : undefined;
      closers.push(() => manager?.close());
      const web = await startWeb({ ...site, options, servers, events, builder });
      closers.unshift(() => web?.close());
      process.on('SIGUSR2', () => logDiagnostics(builder, logger));
      const addresses = servers.map(formatAddress).join(', ');
      const images = counted(repository.images.size, 'image');
      logger.info(`serving ${addresses} with ${images} from ${repository.directory}`);
      await reportToForeground({});
      return {
        reload: (configuration) => {
          for (const part of [builder, manager, web]) part?.reload(configuration);
        },
        refuse: (problem) => web?.refuse(problem),
        status: () => `Job servers: ${addresses}. Images: ${repository.images.size}.`,
        // The manager records the results of the running jobs, and the page shows these jobs until they have ended.
        close: (urgent) => closeAll([...closers, () => builder.drain({ signal: urgent })]),
      };
    } catch (error) {
      await closeAll(closers);
      throw error;
    }
  };
  try {
    const stopMessage = 'finishing the running jobs; send it again to stop them';
    await runService({ ...options, defaultLog, loggerName: 'nodepool.builder', stopMessage }, start);
  } finally {
    await removePidFile?.();
  }
}

/** Writes crashes to the log, because after a rotation, standard error still goes to the old file. */
function logCrash(log: string): void {
  process.on('uncaughtExceptionMonitor', (error) => appendFileSync(log, `${error.stack ?? String(error)}\n`));
}

/** Logs the state of the process at SIGUSR2, at which the Python builder logs the stacks of its threads. */
function logDiagnostics(builder: NodepoolBuilder, logger: Logger): void {
  const { rss, heapUsed, external } = process.memoryUsage();
  const resources = Object.groupBy(process.getActiveResourcesInfo(), (name) => name);
  const facts = {
    version: `${packageVersion()} on Node ${process.versions.node}`,
    process: `${process.pid}, up for ${process.uptime().toFixed(0)} s`,
    memory: `${formatBytes(rss)}, heap ${formatBytes(heapUsed)}, external ${formatBytes(external)}`,
    'job servers': builder.servers.map(formatAddress).join(', '),
    images: `${builder.repository.images.size} in ${builder.repository.directory}`,
    'active resources': Object.entries(resources)
      .map(([name, all = []]) => `${all.length} ${name}`)
      .join(', '),
  };
  for (const [name, fact] of Object.entries(facts)) logger.info(`diagnostics: ${name}: ${fact}`);
}
