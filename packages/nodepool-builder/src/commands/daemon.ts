import { resolve } from 'node:path';
import { formatAddress } from '@nodepool-builder/gearman-node';
import type { ImageBuilderClass, Logger } from '@nodepool-builder/image-builder';
import { type Command, Option } from 'commander';
import { formatFault } from '../configuration/fault.ts';
import { type LoadedConfiguration, loadConfiguration } from '../configuration/load.ts';
import { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import { statsdAddress } from '../daemon/statsd.ts';
import { DEFAULT_LOG_SETTINGS, readLogSettings } from '../logging/log-settings.ts';
import { openLogging } from '../logging/logging.ts';
import { BACKGROUND_OPTION, reportToForeground, startInBackground } from './background.ts';
import { configOption, positiveInteger } from './options.ts';
import { type PidFile, writePidFile } from './pid-file.ts';
import { stopSignal } from './stop-signal.ts';

const DEFAULT_PID_FILE = '/var/run/nodepool-builder/nodepool-builder.pid';

interface DaemonOptions {
  readonly config: string;
  readonly loggingConfig?: string;
  readonly pidfile?: string;
  readonly nodaemon: boolean;
  readonly buildWorkers: number;
  readonly uploadWorkers: number;
  readonly embeddedGearmand?: true;
  readonly inBackground?: true;
}

/** The default command: serve until told to stop. */
export function registerDaemon(
  program: Command,
  builders: Readonly<Record<string, ImageBuilderClass>>,
): void {
  program
    .addOption(configOption())
    .option('-l, --logging-config <file>', 'logging configuration file (default: to standard error)')
    .option('-p, --pidfile <file>', `pid file (default: ${DEFAULT_PID_FILE}; with -d none)`)
    .option('-d, --nodaemon', 'stay in the foreground', false)
    .option('--build-workers <n>', 'how many builds run at a time', positiveInteger, 1)
    .option('--upload-workers <n>', 'how many uploads and deletions run at a time', positiveInteger, 4)
    .option(
      '--embedded-gearmand',
      'run a job server too, on loopback (default: if gearman-servers names none)',
    )
    .addOption(new Option(BACKGROUND_OPTION).hideHelp())
    .action(async (options: DaemonOptions) => {
      if (options.nodaemon || options.inBackground) await serve(options, builders);
      else await startInBackground(await backgroundArguments(options, Object.keys(builders)));
    });
}

/** The copy in the background runs in `/`: what is relative here has to be absolute there. */
async function backgroundArguments(options: DaemonOptions, builders: readonly string[]): Promise<string[]> {
  await loadConfiguration(options.config, { builders }); // a fault in it is told here, where someone looks
  return [
    `--config=${resolve(options.config)}`,
    ...(options.loggingConfig === undefined ? [] : [`--logging-config=${resolve(options.loggingConfig)}`]),
    `--pidfile=${resolve(options.pidfile ?? DEFAULT_PID_FILE)}`,
    `--build-workers=${options.buildWorkers}`,
    `--upload-workers=${options.uploadWorkers}`,
    ...(options.embeddedGearmand ? ['--embedded-gearmand'] : []),
  ];
}

async function serve(
  options: DaemonOptions,
  builders: Readonly<Record<string, ImageBuilderClass>>,
): Promise<void> {
  const stop = stopSignal();
  // puppet-nodepool's restart sends it right behind SIGINT, and its default action is to die.
  process.on('SIGUSR1', () => {});
  let reloadConfiguration: (() => void) | undefined; // nothing to do before it serves: the file was just read
  process.on('SIGHUP', () => reloadConfiguration?.());
  let pidFile: PidFile | undefined;
  try {
    const loaded = await loadConfiguration(options.config, { builders: Object.keys(builders) });
    const settings =
      options.loggingConfig === undefined
        ? DEFAULT_LOG_SETTINGS
        : await readLogSettings(options.loggingConfig);
    const logging = openLogging(settings);
    try {
      if (options.pidfile !== undefined) pidFile = await writePidFile(options.pidfile);
      const logger = logging.logger('nodepool.builder');
      logWarnings(logger, loaded);
      const builder = await NodepoolBuilder.start({
        configuration: loaded.configuration,
        builders,
        buildWorkers: options.buildWorkers,
        uploadWorkers: options.uploadWorkers,
        ...(options.embeddedGearmand && { embeddedGearmand: true }),
        statsd: statsdAddress(process.env),
        logger: (name) => logging.logger(name),
      });
      reloadConfiguration = () => void reload(builder, options.config, Object.keys(builders), logger);
      const servers = builder.servers.map(formatAddress).join(', ');
      logger.info(
        `serving ${servers} with ${builder.repository.images.size} images from ${builder.repository.directory}`,
      );
      await reportToForeground({});
      const signal = await stop.requested;
      logger.info(`${signal}: finishing the jobs that run; send it again to stop them`);
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

async function reload(
  builder: NodepoolBuilder,
  config: string,
  builders: readonly string[],
  logger: Logger,
): Promise<void> {
  try {
    const loaded = await loadConfiguration(config, { builders });
    logWarnings(logger, loaded);
    builder.reload(loaded.configuration);
    logger.info(`read ${config} again`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    logger.error(`the configuration stays as it was: ${reason}`);
  }
}

function logWarnings(logger: Logger, { configuration, warnings }: LoadedConfiguration): void {
  for (const warning of warnings) logger.warn(formatFault(configuration.file, warning));
}
