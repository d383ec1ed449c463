import { appendFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { formatBytes } from '@nodepool-builder/image-builder/internal';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import { type Closer, closeAll } from '../daemon/close-all.ts';
import { startManagerService } from '../daemon/manager-service.ts';
import { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import { backgroundLogSettings, defaultLogSettings } from '../logging/read-log-settings.ts';
import type { LogLevel } from '../logging/record-format.ts';
import { errorLine } from '../terms/command-error.ts';
import { exitReasonOf } from '../terms/exit-codes.ts';
import { counted } from '../terms/units.ts';
import { packageVersion } from '../terms/version.ts';
import { checkWebOptions, openEventMetrics, type WebOptions } from '../web/web-options.ts';
import { reportToForeground, startInBackground } from './background.ts';
import { exampleOf } from './options.ts';
import { writePidFile } from './pid-file.ts';
import { addServeOptions, DEFAULT_PID_FILE } from './serve-options.ts';
import { runService, type Service, type ServiceOptions, type ServiceSite, startWeb } from './service.ts';

interface ServeOptions extends Pick<ServiceOptions, 'config' | 'loggingConfig' | 'secure'>, WebOptions {
  readonly nodaemon: boolean;
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

/** `serve`, which also runs without a command. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  const serveCommand = program
    .command('serve')
    .description(
      'Builds, uploads and deletes images as Gearman jobs request it: in the background, or with -d in the foreground. ' +
        'With --all-in-one it also runs a job server and the manager, which decides what is built, uploaded, kept and ' +
        'deleted. On several hosts, use the command manage for that.',
    )
    .addHelpText('after', exampleOf('serve -d -c nodepool.yaml'));
  addServeOptions(serveCommand);
  serveCommand.action(async () => runServe(serveCommand, await modules()));
}

async function runServe(command: Command, modules: Modules): Promise<void> {
  const options = command.opts<ServeOptions>();
  const { config, secure, loggingConfig, nodaemon, inBackground } = options;
  checkWebOptions(options);
  if (nodaemon || inBackground !== undefined) return await serve(options, modules);
  // Reports errors in the file on the terminal.
  const { configuration } = await loadConfiguration(config, { modules, secure });
  const { pid, log } = await startInBackground(backgroundArguments(command), configuration['images-dir']);
  const where =
    loggingConfig === undefined ? log : `as configured in ${loggingConfig}; standard error: ${log}`;
  console.log(`nodepool-builder serves in the background as process ${pid}; log: ${where}`);
}

/** Arguments of the background process. Paths are absolute, because it runs in `/`. */
function backgroundArguments(command: Command): string[] {
  const pidfile = resolve(DEFAULT_PID_FILE);
  const options: Record<string, string | number | boolean | undefined> = { pidfile, ...command.opts() };
  return command.options.flatMap((option) => {
    const value = options[option.attributeName()];
    if (value === undefined || value === false) return [];
    if (value === true) return [`${option.long}`];
    return [`${option.long}=${option.flags.endsWith('<file>') ? resolve(String(value)) : value}`];
  });
}

/**
 * Serves until SIGTERM or SIGINT, then finishes the running jobs.
 *
 * @throws ConfigurationError, CommandError, ImageError if it cannot start
 */
async function serve(options: ServeOptions, modules: Modules): Promise<void> {
  // puppet-nodepool's restart sends SIGUSR1 right after SIGINT. Without a handler, it would end the process.
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {});
  if (options.inBackground !== undefined) logCrash(options.inBackground);
  try {
    await runBuilder(options, modules);
  } catch (error) {
    await reportToForeground({ error: errorLine(error), exitReason: exitReasonOf(error) });
    throw error;
  }
}

async function runBuilder(options: ServeOptions, modules: Modules): Promise<void> {
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
    // Jobs that run if the start fails are stopped, and their job server assigns them again.
    const closers: Closer[] = [() => builder.close({ signal: AbortSignal.abort() })];
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
    const log = { defaultLog, loggerName: 'nodepool.builder' };
    await runService({ ...options, ...log, stopMessage, modules }, start);
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
