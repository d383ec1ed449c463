import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Command } from 'commander';
import { jobServers } from '../configuration/gearman-server.ts';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import { closeAll } from '../daemon/close-all.ts';
import { startManagerService } from '../daemon/manager-service.ts';
import { defaultLogSettings } from '../logging/read-log-settings.ts';
import type { LogLevel } from '../logging/record-format.ts';
import { addWebOptions, checkWebOptions, openEventMetrics, type WebOptions } from '../web/web-options.ts';
import { dryRun } from './manager-lists.ts';
import { configOption, exampleOf, loggingConfigOption, logLevelOption } from './options.ts';
import { runService, type Service, type ServiceOptions, type ServiceSite, startWeb } from './service.ts';

interface ManageOptions extends Pick<ServiceOptions, 'config' | 'loggingConfig'>, WebOptions {
  readonly dryRun?: true;
  readonly logLevel?: LogLevel;
}

/** `manage`: runs the manager until a signal stops it. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  const manageCommand = program
    .command('manage')
    .description(
      'Decides what the builders do: it has images built when they are due, uploaded to every provider that uses ' +
        'them, and deleted once newer ones have replaced them. Runs in the foreground until SIGTERM. Several may run ' +
        'with one store: one of them is the leader, the others stand by. SIGHUP, or a change of the file, reloads the ' +
        'configuration.',
    )
    .addOption(configOption())
    .addOption(loggingConfigOption())
    .addOption(logLevelOption('info'))
    .option('--dry-run', 'only print what it would do, and which orphaned images it would delete');
  addWebOptions(manageCommand);
  manageCommand
    .addHelpText('after', NOTES + exampleOf('manage --dry-run -c nodepool.yaml', 'manage -c nodepool.yaml'))
    .action(async (options: ManageOptions) => {
      checkWebOptions(options);
      if (options.dryRun) {
        const { configuration } = await loadConfiguration(options.config, { modules: await modules() });
        await dryRun(configuration);
      } else {
        const log = {
          defaultLog: defaultLogSettings(options.logLevel ?? 'info'),
          loggerName: 'nodepool.manager',
        };
        await runService({ ...options, ...log, stopMessage: 'stopping', modules: await modules() }, (site) =>
          startManager(site, options),
        );
      }
    });
}

const NOTES = `
"plan" shows what it would do next, and why.
`;

async function startManager(site: ServiceSite, options: ManageOptions): Promise<Service> {
  const servers = jobServers(site.configuration);
  const events = await openEventMetrics(options, site.configuration, true);
  const manager = await startManagerService({ ...site, servers, onEvent: events?.onManagerEvent });
  const addresses = servers.map(formatAddress).join(', ');
  site.logger('nodepool.manager').info(`managing the builders at ${addresses}`);
  const web = await startWeb({ ...site, options, servers, events }).catch(async (error: unknown) => {
    await manager.close();
    throw error;
  });
  return {
    reload: (configuration) => {
      for (const part of [manager, web]) part?.reload(configuration);
    },
    refuse: (problem) => web?.refuse(problem),
    status: () => `Job servers: ${addresses}.`,
    close: () => closeAll([() => manager.close(), () => web?.close()]),
  };
}
