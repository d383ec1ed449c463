import { resolve } from 'node:path';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Command, Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import type { Modules } from '../configuration/modules.ts';
import { configOption, exampleOf } from './options.ts';

/** A command that works with the configuration file of `-c`. */
export type ConfiguredCommand = CommandOutline &
  (
    | { run(configuration: Configuration, options: object, argument: string): Promise<void> }
    /** Of a command that needs only the job servers, or the rest of the file only with some options. */
    | { ask(site: JobSite, options: object, argument: string): Promise<void> }
  );

/** The job servers of a configuration file. */
export interface JobSite {
  readonly servers: readonly ServerAddress[];
  /** Reads the whole file. */
  readonly load: () => Promise<Configuration>;
}

interface CommandOutline {
  readonly name: string;
  readonly description: string;
  readonly argument?: readonly [syntax: string, description: string];
  /** Options apart from `-c`. */
  readonly options?: readonly Option[];
  /** Arguments and options in the example, apart from `-c`. */
  readonly example?: string;
}

/** Adds commands to the program. What reads configurations is loaded once one of them runs, so that `--help` is fast. */
export function registerConfigured(
  program: Command,
  modules: () => Promise<Modules>,
  commands: readonly ConfiguredCommand[],
): void {
  for (const row of commands) {
    const { name, description, argument, options = [], example } = row;
    const command = program.command(name).description(description).addOption(configOption());
    if (argument !== undefined) command.argument(...argument);
    for (const option of options) command.addOption(option);
    const line = [name, example ?? [], '-c nodepool.yaml'].flat().join(' ');
    command.addHelpText('after', exampleOf(line)).action(async () => {
      const values = command.opts<{ config: string }>();
      const load = async (): Promise<Configuration> => {
        const { loadConfiguration } = await import('../configuration/load.ts');
        return (await loadConfiguration(values.config, { modules: await modules() })).configuration;
      };
      const operand = command.args[0] ?? ''; // empty if the command has none
      if ('run' in row) await row.run(await load(), values, operand);
      else await row.ask({ servers: await readJobServers(values.config, load), load }, values, operand);
    });
  }
}

async function readJobServers(
  config: string,
  load: () => Promise<Configuration>,
): Promise<readonly ServerAddress[]> {
  const { readYaml } = await import('../yaml/yaml-document.ts');
  const { jobServers, plainJobServers } = await import('../configuration/gearman-server.ts');
  const document = await readYaml(resolve(config), '-c', { duplicateKeys: 'last', variables: process.env });
  return plainJobServers(document.value) ?? jobServers(await load());
}
