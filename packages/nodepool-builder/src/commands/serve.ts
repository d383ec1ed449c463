import { appendFileSync } from 'node:fs';
import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { formatDiagnostic } from '../configuration/diagnostic.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import type { ReadLogSettings } from '../logging/log-settings.ts';
import { backgroundLogSettings, defaultLogSettings, readLogSettings } from '../logging/read-log-settings.ts';
import type { ManagerService, ManagerServiceOptions } from '../manager/manager-service.ts';
import type { Modules } from '../modules.ts';
import { packageVersion } from '../version.ts';
import { reportToForeground } from './background.ts';
import { ConfigurationReload, logWarnings } from './configuration-reload.ts';
import { type PidFile, writePidFile } from './pid-file.ts';
import { stopSignal } from './stop-signal.ts';

/** Settings of {@link serve}. */
export interface ServeOptions {
  /** Path of `nodepool.yaml`. */
  readonly config: string;
  /** Path of the logging configuration. Default: everything to standard error, as in the Python builder. */
  readonly loggingConfig?: string;
  /** Path of a file with secret `env-vars`. */
  readonly secure?: string;
  readonly pidfile?: string;
  /** Path of the log of a background process: of everything without {@link loggingConfig}, else of crashes only. */
  readonly inBackground?: string;
  readonly buildWorkers: number;
  readonly uploadWorkers: number;
  readonly embeddedGearmand?: true;
  /** Seconds for which instances of failed builds are kept, whatever the configuration says. */
  readonly keepOnFailure?: number;
  /** Also run a job server and the manager. */
  readonly allInOne?: true;
  readonly modules: Modules;
}

/**
 * Serves until SIGTERM or SIGINT, then finishes the running jobs.
 *
 * @throws ConfigurationError, CommandError, ImageError if it cannot start
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { config, secure, modules } = options;
  const stop = stopSignal();
  // puppet-nodepool's restart sends SIGUSR1 right after SIGINT; by default, it would end the process.
  process.on('SIGUSR1', () => {});
  const on = { SIGHUP: () => {}, SIGUSR2: () => {} }; // no effect before it serves
  process.on('SIGHUP', () => on.SIGHUP());
  process.on('SIGUSR2', () => on.SIGUSR2());
  if (options.inBackground !== undefined) logCrash(options.inBackground);
  let pidFile: PidFile | undefined;
  try {
    const loaded = await loadConfiguration(config, { modules, secure });
    const { settings, warnings } = await logSettingsOf(options);
    const { openLogging } = await import('../logging/logging.ts');
    const logging = openLogging(settings);
    try {
      if (options.pidfile !== undefined) pidFile = await writePidFile(options.pidfile);
      const logger = logging.logger('nodepool.builder');
      for (const warning of warnings) logger.warn(formatDiagnostic(options.loggingConfig ?? '', warning));
      logWarnings(logger, loaded);
      const common = {
        configuration: loaded.configuration,
        environment: process.env,
        logger: (name: string) => logging.logger(name),
      };
      const builder = await NodepoolBuilder.start({
        ...common,
        modules: loaded.plugins.modules,
        buildWorkers: options.buildWorkers,
        uploadWorkers: options.uploadWorkers,
        keepOnFailure: options.keepOnFailure,
        ...((options.embeddedGearmand || options.allInOne) && { embeddedGearmand: true }),
      });
      const manager = options.allInOne && (await startManager(builder, common));
      const reload = new ConfigurationReload(loaded, {
        file: config,
        secure,
        logger,
        apply: (configuration) => {
          builder.reload(configuration);
          manager?.reload(configuration);
        },
      });
      on.SIGHUP = () => void reload.reload();
      on.SIGUSR2 = () => logDiagnostics(builder, logger);
      const servers = builder.servers.map(formatAddress).join(', ');
      logger.info(
        `serving ${servers} with ${builder.repository.images.size} images from ${builder.repository.directory}`,
      );
      await reportToForeground({});
      const signal = await stop.requested;
      logger.info(`${signal}: finishing the running jobs; send it again to stop them`);
      reload.close();
      await manager?.close();
      await builder.close({ signal: stop.urgent });
      logger.info('stopped');
    } finally {
      await pidFile?.remove();
      await logging.close();
    }
  } catch (error) {
    await reportToForeground({ fault: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    stop.close();
  }
}

/** Writes crashes to the log: after a rotation, standard error still goes to the old file. */
function logCrash(log: string): void {
  process.on('uncaughtExceptionMonitor', (error) => appendFileSync(log, `${error.stack ?? String(error)}\n`));
}

async function logSettingsOf({ loggingConfig, inBackground }: ServeOptions): Promise<ReadLogSettings> {
  if (loggingConfig !== undefined) return await readLogSettings(loggingConfig);
  const settings =
    inBackground === undefined ? defaultLogSettings('debug') : backgroundLogSettings('debug', inBackground);
  return { settings, warnings: [] };
}

/** Starts the manager of this builder, and of all others at its job servers. */
async function startManager(
  builder: NodepoolBuilder,
  options: Omit<ManagerServiceOptions, 'servers'>,
): Promise<ManagerService> {
  try {
    const service = await import('../manager/manager-service.ts'); // imported on demand: a builder alone starts faster
    return await service.startManagerService({ ...options, servers: builder.servers });
  } catch (error) {
    await builder.close();
    throw error;
  }
}

/** Logs the state of the process at SIGUSR2, where the Python builder logs the stacks of its threads. */
function logDiagnostics(builder: NodepoolBuilder, logger: Logger): void {
  const { rss, heapUsed, external } = process.memoryUsage();
  const facts = {
    version: `${packageVersion()} on Node ${process.versions.node}`,
    process: `${process.pid}, up for ${process.uptime().toFixed(0)} s`,
    memory: `${mebibytes(rss)}, heap ${mebibytes(heapUsed)}, external ${mebibytes(external)}`,
    'job servers': builder.servers.map(formatAddress).join(', '),
    images: `${builder.repository.images.size} in ${builder.repository.directory}`,
    'active resources': counted(process.getActiveResourcesInfo()),
  };
  for (const [name, fact] of Object.entries(facts)) logger.info(`diagnostics: ${name}: ${fact}`);
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function counted(names: readonly string[]): string {
  const kinds = Object.entries(Object.groupBy(names, (name) => name));
  return kinds.map(([name, all = []]) => `${all.length} ${name}`).join(', ');
}
