import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Command } from 'commander';
import { formatDiagnostic } from '../configuration/diagnostic.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { defaultLogSettings, readLogSettings } from '../logging/read-log-settings.ts';
import type { Modules } from '../modules.ts';
import { ConfigurationReload, logWarnings } from './configuration-reload.ts';
import { configOption, loggingConfigOption } from './options.ts';
import { dryRun } from './plan.ts';
import { stopSignal } from './stop-signal.ts';

interface ManageOptions {
  readonly config: string;
  readonly loggingConfig?: string;
  readonly dryRun?: true;
}

/** `manage`: runs the manager until a signal stops it. */
export function registerManage(program: Command, modules: Modules): void {
  program
    .command('manage')
    .summary('run the manager')
    .description(
      'Decides what the builders do: it has images built when they are due, uploaded to every provider that uses ' +
        'them, and deleted once newer ones have replaced them. Runs in the foreground until SIGTERM. Several may run ' +
        'with one store: one of them is the leader, the others stand by. SIGHUP, or a change of the file, reloads the ' +
        'configuration.',
    )
    .addOption(configOption())
    .addOption(loggingConfigOption())
    .option('--dry-run', 'only print what it would do, and which orphaned images it would delete')
    .addHelpText('after', EXAMPLES)
    .action(async (options: ManageOptions) => {
      if (options.dryRun) await printDryRun(options, modules);
      else await manage(options, modules);
    });
}

const EXAMPLES = `
"plan" shows what it would do next, and why.

Examples:
  $ nodepool-builder manage --dry-run -c nodepool.yaml
  $ nodepool-builder manage -c nodepool.yaml`;

async function printDryRun({ config }: ManageOptions, modules: Modules): Promise<void> {
  const { configuration } = await loadConfiguration(config, { modules });
  await dryRun(configuration);
}

async function manage({ config, loggingConfig }: ManageOptions, modules: Modules): Promise<void> {
  const stop = stopSignal();
  const on = { SIGHUP: () => {} }; // no effect before it manages
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
      for (const warning of warnings) logger.warn(formatDiagnostic(loggingConfig ?? '', warning));
      logWarnings(logger, loaded);
      const servers = jobServers(loaded.configuration);
      const { startManagerService } = await import('../manager/manager-service.ts');
      const service = await startManagerService({
        configuration: loaded.configuration,
        servers,
        environment: process.env,
        logger: (name) => logging.logger(name),
      });
      const reload = new ConfigurationReload(loaded, {
        file: config,
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
