import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Command } from 'commander';
import { formatFault } from '../configuration/fault.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { defaultLogSettings, readLogSettings } from '../logging/read-log-settings.ts';
import type { Modules } from '../modules.ts';
import { ConfigurationReload, logWarnings } from './configuration-reload.ts';
import { dryRun } from './dry-run.ts';
import { configOption, loggingConfigOption } from './options.ts';
import { stopSignal } from './stop-signal.ts';

interface ManageOptions {
  readonly config: string;
  readonly loggingConfig?: string;
  readonly dryRun?: true;
}

/** `manage`: decides what is built, uploaded, kept and deleted, until it is told to stop. */
export function registerManage(program: Command, modules: Modules): void {
  program
    .command('manage')
    .summary('run the manager')
    .description(
      'Drives the builders behind the job servers: has images built when they are due, uploaded to every provider ' +
        'that uses them, and deleted when newer ones have taken their place. Runs in the foreground until SIGTERM. ' +
        'Several may run with one store: one leads, the others stand by. SIGHUP, or a change of the file, has the ' +
        'configuration read again.',
    )
    .addOption(configOption())
    .addOption(loggingConfigOption())
    .option('--dry-run', 'print what it would do, and which leaked images it would remove; change nothing')
    .addHelpText('after', EXAMPLES)
    .action(async (options: ManageOptions) => {
      if (options.dryRun) await printDryRun(options, modules);
      else await manage(options, modules);
    });
}

const EXAMPLES = `
What it would do next, and why: nodepool-builder plan

Examples:
  $ nodepool-builder manage --dry-run -c nodepool.yaml
  $ nodepool-builder manage -c nodepool.yaml`;

async function printDryRun({ config }: ManageOptions, modules: Modules): Promise<void> {
  const { configuration } = await loadConfiguration(config, { modules });
  await dryRun(configuration);
}

async function manage({ config, loggingConfig }: ManageOptions, modules: Modules): Promise<void> {
  const stop = stopSignal();
  const on = { SIGHUP: () => {} }; // nothing to do before it manages
  const onHangUp = (): void => on.SIGHUP();
  process.on('SIGHUP', onHangUp);
  try {
    const loaded = await loadConfiguration(config, { modules });
    const { settings, warnings } =
      loggingConfig === undefined
        ? { settings: defaultLogSettings('info'), warnings: [] }
        : await readLogSettings(loggingConfig);
    const { openLogging } = await import('../logging/logging.ts');
    const logging = openLogging(settings);
    try {
      const logger = logging.logger('nodepool.manager');
      for (const warning of warnings) logger.warn(formatFault(loggingConfig ?? '', warning));
      logWarnings(logger, loaded);
      const servers = jobServers(loaded.configuration);
      const { ManagerService } = await import('../manager/manager-service.ts');
      const service = await ManagerService.start({
        configuration: loaded.configuration,
        servers,
        environment: process.env,
        logger: (name) => logging.logger(name),
      });
      const reload = new ConfigurationReload(loaded, {
        file: config,
        modules,
        logger,
        apply: (configuration) => service.reload(configuration),
      });
      on.SIGHUP = () => void reload.reload();
      logger.info(`managing the builders at ${servers.map(formatAddress).join(', ')}`);
      logger.info(`${await stop.requested}: stopping`);
      reload.close();
      await service.close();
      logger.info('stopped');
    } finally {
      await logging.close();
    }
  } finally {
    process.off('SIGHUP', onHangUp);
    stop.close();
  }
}
