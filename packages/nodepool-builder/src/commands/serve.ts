import { appendFileSync } from 'node:fs';
import { formatAddress } from '@nodepool-builder/gearman-node';
import { formatFault } from '../configuration/fault.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import type { ReadLogSettings } from '../logging/log-settings.ts';
import { backgroundLogSettings, defaultLogSettings, readLogSettings } from '../logging/read-log-settings.ts';
import type { ManagerService, ManagerServiceOptions } from '../manager/manager-service.ts';
import type { Modules } from '../modules.ts';
import { reportToForeground } from './background.ts';
import { ConfigurationReload, logWarnings } from './configuration-reload.ts';
import { logDiagnostics } from './diagnostics.ts';
import { type PidFile, writePidFile } from './pid-file.ts';
import { stopSignal } from './stop-signal.ts';

/** What is served, and how. */
export interface ServeOptions {
  /** Path of `nodepool.yaml`. */
  readonly config: string;
  /** Path of the logging configuration. Default: everything to standard error, as the Python builder had it. */
  readonly loggingConfig?: string;
  /** Path of a file with `env-vars` that are kept apart. */
  readonly secure?: string;
  readonly pidfile?: string;
  /** Path of the log of a copy in the background: everything without {@link loggingConfig}, else only crashes. */
  readonly inBackground?: string;
  readonly buildWorkers: number;
  readonly uploadWorkers: number;
  readonly embeddedGearmand?: true;
  /** Seconds for which the machines of failed builds are kept, whatever the configuration says. */
  readonly keepOnFailure?: number;
  /** Run a job server and the manager too. */
  readonly allInOne?: true;
  readonly modules: Modules;
}

/**
 * Serves until SIGTERM or SIGINT, and until the jobs that run are done.
 *
 * @throws ConfigurationError, CommandError, ImageError: what keeps it from beginning
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { config, secure, modules } = options;
  const stop = stopSignal();
  // puppet-nodepool's restart sends it right behind SIGINT, and its default action is to die.
  process.on('SIGUSR1', () => {});
  const on = { SIGHUP: () => {}, SIGUSR2: () => {} }; // nothing to do before it serves
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
      for (const warning of warnings) logger.warn(formatFault(options.loggingConfig ?? '', warning));
      logWarnings(logger, loaded);
      const common = {
        configuration: loaded.configuration,
        environment: process.env,
        logger: (name: string) => logging.logger(name),
      };
      const builder = await NodepoolBuilder.start({
        ...common,
        modules,
        buildWorkers: options.buildWorkers,
        uploadWorkers: options.uploadWorkers,
        keepOnFailure: options.keepOnFailure,
        ...((options.embeddedGearmand || options.allInOne) && { embeddedGearmand: true }),
      });
      const manager = options.allInOne && (await startManager(builder, common));
      const reload = new ConfigurationReload(loaded, {
        file: config,
        secure,
        modules,
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
      logger.info(`${signal}: finishing the jobs that run; send it again to stop them`);
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

/** Writes a crash to the current log: standard error still leads to the log as it was at the start. */
function logCrash(log: string): void {
  process.on('uncaughtExceptionMonitor', (error) => appendFileSync(log, `${error.stack ?? String(error)}\n`));
}

async function logSettingsOf({ loggingConfig, inBackground }: ServeOptions): Promise<ReadLogSettings> {
  if (loggingConfig !== undefined) return await readLogSettings(loggingConfig);
  const settings =
    inBackground === undefined ? defaultLogSettings('debug') : backgroundLogSettings('debug', inBackground);
  return { settings, warnings: [] };
}

/** Begins to manage the builder itself, and whatever others its job servers know. */
async function startManager(
  builder: NodepoolBuilder,
  options: Omit<ManagerServiceOptions, 'servers'>,
): Promise<ManagerService> {
  try {
    const service = await import('../manager/manager-service.ts'); // a builder alone does without, and starts the sooner
    return await service.ManagerService.start({ ...options, servers: builder.servers });
  } catch (error) {
    await builder.close();
    throw error;
  }
}
