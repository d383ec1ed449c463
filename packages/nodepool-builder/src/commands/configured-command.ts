import { resolve } from 'node:path';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Command, Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers, plainJobServers } from '../configuration/gearman-server.ts';
import type { Modules } from '../configuration/modules.ts';
import { readYaml } from '../yaml/yaml-document.ts';
import { configOption, exampleOf } from './options.ts';

/** A command that uses the configuration file of `-c`. */
export interface ConfiguredCommand {
  readonly name: string;
  readonly description: string;
  readonly argument?: readonly [syntax: string, description: string];
  /** Options other than `-c`. */
  readonly options?: readonly Option[];
  /** Arguments and options of the example, other than `-c`. */
  readonly example?: string;
  run(site: ConfiguredSite, options: object, argument: string): Promise<void>;
}

/** A configuration file that is read when a command needs it. */
export interface ConfiguredSite {
  readonly configuration: () => Promise<Configuration>;
  /** The job servers in the file. If these have no TLS, the rest of the file is neither read nor checked. */
  readonly servers: () => Promise<readonly ServerAddress[]>;
}

/** Makes the function that adds commands to the program. */
export function configured(...commands: readonly ConfiguredCommand[]) {
  return (program: Command, modules: () => Promise<Modules>): void => {
    for (const row of commands) {
      const { name, description, argument, options = [], example } = row;
      const command = program.command(name).description(description).addOption(configOption());
      if (argument !== undefined) command.argument(...argument);
      for (const option of options) command.addOption(option);
      const line = [name, example ?? [], '-c nodepool.yaml'].flat().join(' ');
      command.addHelpText('after', exampleOf(line)).action(async () => {
        const values = command.opts<{ config: string }>();
        await row.run(siteOf(values.config, modules), values, command.args[0] ?? ''); // empty if the command has no argument
      });
    }
  };
}

function siteOf(config: string, modules: () => Promise<Modules>): ConfiguredSite {
  const configuration = async (): Promise<Configuration> => {
    const { loadConfiguration } = await import('../configuration/load.ts'); // takes 150 ms with all modules
    return (await loadConfiguration(config, { modules: await modules() })).configuration;
  };
  const servers = async (): Promise<readonly ServerAddress[]> => {
    const document = await readYaml(resolve(config), '-c', { duplicateKeys: 'last', variables: process.env });
    return plainJobServers(document.value) ?? jobServers(await configuration());
  };
  return { configuration, servers };
}
