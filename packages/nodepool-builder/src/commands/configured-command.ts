import type { Command, Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import type { Modules } from '../modules.ts';
import { configOption, exampleOf } from './options.ts';

/** A command that works with the configuration file of `-c`. */
export interface ConfiguredCommand {
  readonly name: string;
  readonly description: string;
  readonly argument?: readonly [syntax: string, description: string];
  /** Options apart from `-c`. */
  readonly options?: readonly Option[];
  /** Arguments and options in the example, apart from `-c`. */
  readonly example?: string;
  /** @param argument empty if the command has none */
  run(configuration: Configuration, options: object, argument: string): Promise<void>;
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
      const { loadConfiguration } = await import('../configuration/load.ts');
      const { configuration } = await loadConfiguration(values.config, { modules: await modules() });
      await row.run(configuration, values, command.args[0] ?? '');
    });
  }
}
