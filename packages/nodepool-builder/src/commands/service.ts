import type { Logger } from '@nodepool-builder/image-builder';
import type { Configuration } from '../configuration/configuration.ts';
import { type LoadedConfiguration, loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import type { LogSettings } from '../logging/log-settings.ts';
import { openLogging } from '../logging/logging.ts';
import { readLogSettings } from '../logging/read-log-settings.ts';
import { errorLine } from '../terms/command-error.ts';
import type { EventMetrics } from '../web/event-metrics.ts';
import type { WebServiceOptions } from '../web/web-service.ts';
import { formatDiagnostic } from '../yaml/diagnostic.ts';
import { stopSignal } from './stop-signal.ts';
import { Systemd } from './systemd.ts';
import { FileWatch } from './watch-files.ts';

/** Settings of {@link runService}. */
export interface ServiceOptions {
  /** Path of `nodepool.yaml`. */
  readonly config: string;
  /** Path of a file with secret `env-vars`. */
  readonly secure?: string;
  /** Path of the logging configuration. */
  readonly loggingConfig?: string;
  /** Log settings without {@link loggingConfig}. */
  readonly defaultLog: LogSettings;
  /** Name of the service's own logger. */
  readonly loggerName: string;
  /** Message for the log at the first stop signal. */
  readonly stopMessage: string;
  readonly modules: Modules;
}

/** Configuration, modules and loggers of a service. */
export interface ServiceSite {
  readonly configuration: Configuration;
  /** The modules of the configuration. */
  readonly modules: Modules;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logger: (name: string) => Logger;
  /** True while a changed configuration is being loaded, here or by another process of this host. */
  readonly isReloading: () => Promise<boolean>;
}

/** A service that starts, and the reporter of its reloads. */
interface StartingService {
  readonly logger: Logger;
  readonly systemd: Systemd;
  readonly starting: Promise<Service>;
}

/** A daemon. */
export interface Service {
  /** Applies another configuration. */
  reload(configuration: Configuration): void;
  /** Shows why a changed configuration is not in force, until the next reload. */
  refuse?(problem: string): void;
  /** The line that `systemctl status` shows. */
  status(): string;
  /** @param urgent aborts if running work has to stop */
  close(urgent: AbortSignal): Promise<void>;
}

/**
 * Runs a service until SIGTERM or SIGINT. SIGHUP, or a change of a file, reloads the configuration. SIGHUP also reopens
 * the log files. It notifies systemd of its state.
 *
 * @throws ConfigurationError; errors of `start`
 */
export async function runService(
  options: ServiceOptions,
  start: (site: ServiceSite) => Promise<Service>,
): Promise<void> {
  const { config, secure, loggingConfig, defaultLog, loggerName, stopMessage, modules } = options;
  const stop = stopSignal();
  process.on('SIGHUP', () => {}); // without a handler, the signal would end the process
  try {
    const loaded = await loadConfiguration(config, { modules, secure });
    const { settings, warnings } =
      loggingConfig === undefined
        ? { settings: defaultLog, warnings: [] }
        : await readLogSettings(loggingConfig);
    const logging = openLogging(settings);
    const logger = logging.logger(loggerName);
    const systemd = new Systemd(process.env, logger);
    const reopenLogs = (): void => logging.reopen();
    process.on('SIGHUP', reopenLogs);
    try {
      for (const warning of warnings) logger.warn(formatDiagnostic(loggingConfig ?? '', warning));
      logWarnings(logger, loaded);
      let reloading: Reloading | undefined;
      const starting = start({
        configuration: loaded.configuration,
        modules: loaded.plugins.modules,
        environment: process.env,
        logger: (name) => logging.logger(name),
        isReloading: async () => (await reloading?.isRunning()) === true,
      });
      reloading = reloadOnChange(options, loaded, { logger, systemd, starting });
      const { stop: stopReloading } = reloading;
      const service = await starting.catch((error: unknown) => {
        stopReloading();
        throw error;
      });
      systemd.ready(() => service.status());
      const signal = await stop.requested;
      stopReloading();
      logger.info(`${signal}: ${stopMessage}`);
      systemd.stopping(stopMessage);
      await service.close(stop.urgent);
      logger.info('stopped');
    } finally {
      process.off('SIGHUP', reopenLogs);
      await systemd.close();
      await logging.close();
    }
  } finally {
    stop.close();
  }
}

/** Starts the status page, if an address is configured. */
export async function startWeb({
  events,
  ...site
}: Omit<WebServiceOptions, 'events'> & { readonly events: EventMetrics | undefined }) {
  if (events === undefined) return undefined;
  const { startWebService } = await import('../web/web-service.ts'); // loaded on demand, because it takes 80 ms
  return await startWebService({ ...site, events });
}

/** Reloads of a service's configuration. */
interface Reloading {
  readonly isRunning: () => Promise<boolean>;
  readonly stop: () => void;
}

/** Time until other processes of this host have also loaded a changed file, with their next check. */
const OTHERS_TIME = 2000;

/**
 * Reloads the configuration at SIGHUP, and when one of its files changes, once the service runs. If the new one is
 * invalid, it logs the error and keeps the old one.
 */
function reloadOnChange(
  { config, secure }: ServiceOptions,
  { files, plugins }: LoadedConfiguration,
  { logger, systemd, starting }: StartingService,
): Reloading {
  let isClosed = false;
  let running = 0;
  const reload = async (): Promise<void> => {
    const service = await starting.catch(() => undefined); // its error is already reported
    if (isClosed || service === undefined) return;
    systemd.reloading();
    try {
      const loaded = await loadConfiguration(config, { secure, plugins });
      if (isClosed) return;
      logWarnings(logger, loaded);
      service.reload(loaded.configuration);
      watch.watch(loaded.files);
      logger.info(`reloaded ${config}`);
    } catch (error) {
      const problem = `the configuration is unchanged: ${errorLine(error)}`;
      logger.error(problem);
      service.refuse?.(problem);
    }
    if (!isClosed) systemd.ready(() => service.status());
  };
  // Reloads run one after the other, so that the newest configuration wins.
  let last: Promise<unknown> = starting.catch(() => {});
  const request = (): void => {
    running += 1;
    const end = (): void => {
      running -= 1;
    };
    last = last.then(reload).finally(() => setTimeout(end, OTHERS_TIME).unref());
  };
  const watch = new FileWatch(request);
  watch.watch(files);
  process.on('SIGHUP', request);
  const stop = (): void => {
    isClosed = true;
    watch.close();
    process.off('SIGHUP', request);
  };
  return { isRunning: async () => running > 0 || (await watch.hasChanged()), stop };
}

/** Logs the warnings of a configuration that is in force. */
function logWarnings(logger: Logger, { configuration, warnings }: LoadedConfiguration): void {
  for (const warning of warnings) logger.warn(formatDiagnostic(configuration.file, warning));
}
