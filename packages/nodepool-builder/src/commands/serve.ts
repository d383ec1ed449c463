import { appendFileSync } from 'node:fs';
import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { formatBytes } from '@nodepool-builder/image-builder/internal';
import { closeAll } from '../daemon/close-all.ts';
import {
  type ManagerService,
  type ManagerServiceOptions,
  startManagerService,
} from '../daemon/manager-service.ts';
import { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import { backgroundLogSettings, defaultLogSettings } from '../logging/read-log-settings.ts';
import type { LogLevel } from '../logging/record-format.ts';
import { errorLine } from '../terms/command-error.ts';
import { exitReasonOf } from '../terms/exit-codes.ts';
import { counted } from '../terms/units.ts';
import { packageVersion } from '../terms/version.ts';
import type { EventMetrics } from '../web/event-metrics.ts';
import { openEventMetrics, type WebOptions } from '../web/web-options.ts';
import type { WebService } from '../web/web-service.ts';
import { reportToForeground } from './background.ts';
import { writePidFile } from './pid-file.ts';
import { runService, type Service, type ServiceOptions, type ServiceSite } from './service.ts';

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
    const manager = allInOne
      ? await startManager(builder, { ...site, onEvent: events?.onManagerEvent })
      : undefined;
    const web = await startWeb({ ...options, events }, builder, manager, site);
    process.on('SIGUSR2', () => logDiagnostics(builder, logger));
    const servers = builder.servers.map(formatAddress).join(', ');
    const { images, directory } = builder.repository;
    logger.info(`serving ${servers} with ${counted(images.size, 'image')} from ${directory}`);
    await reportToForeground({});
    return {
      reload: (configuration) => {
        builder.reload(configuration);
        manager?.reload(configuration);
        web?.reload(configuration);
      },
      refuse: (problem) => web?.refuse(problem),
      status: () => `Job servers: ${servers}. Images: ${builder.repository.images.size}.`,
      close: async (urgent) => {
        // The manager records the results of the running jobs, and the page shows these jobs until they have ended.
        const drain = () => builder.drain({ signal: urgent });
        await closeAll([() => web?.close(), () => builder.close(), () => manager?.close(), drain]);
      },
    };
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

/** Starts the manager of all builders at the job servers. */
async function startManager(
  builder: NodepoolBuilder,
  options: Omit<ManagerServiceOptions, 'servers'>,
): Promise<ManagerService> {
  try {
    return await startManagerService({ ...options, servers: builder.servers });
  } catch (error) {
    await builder.close();
    throw error;
  }
}

/** Starts the status page, if an address is configured. */
async function startWeb(
  options: ServeOptions & { readonly events: EventMetrics | undefined },
  builder: NodepoolBuilder,
  manager: ManagerService | undefined,
  site: ServiceSite,
): Promise<WebService | undefined> {
  const { web, events } = options;
  if (web === undefined || events === undefined) return undefined;
  try {
    const service = await import('../web/web-service.ts'); // loaded on demand, because it takes 80 ms
    return await service.startWebService({
      ...site,
      web,
      options,
      servers: builder.servers,
      events,
      builder,
    });
  } catch (error) {
    await closeAll([() => builder.close(), () => manager?.close()]);
    throw error;
  }
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
