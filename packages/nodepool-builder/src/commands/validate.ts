import type { Command } from 'commander';
import { ConfigurationError, formatDiagnostic } from '../configuration/diagnostic.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { jsonSchema } from '../configuration/schema.ts';
import type { Modules } from '../modules.ts';
import { configOption } from './options.ts';

/** `validate`: checks a configuration file. */
export function registerValidate(program: Command, modules: Modules): void {
  program
    .command('validate')
    .summary('check a configuration file')
    .description(
      'Checks a configuration file. It reports each error with its line and a remedy, and warns of directories and ' +
        'programs that this host lacks. It fails if the daemon would refuse the file, or if the jobs of an image would ' +
        'fail on every host.',
    )
    .addOption(configOption())
    .option('--schema', 'print a JSON Schema for editors instead, with the keys of the plugins in the file')
    .action(async (options: { config: string; schema?: true }) => {
      const { configuration, warnings, plugins } = await loadConfiguration(options.config, {
        modules,
        checksHost: options.schema === undefined,
      });
      if (options.schema) {
        console.log(JSON.stringify(jsonSchema(plugins.modules), null, 2));
        return;
      }
      if (warnings.some(({ severity }) => severity === 'job-error')) {
        throw new ConfigurationError(configuration.file, warnings);
      }
      for (const warning of warnings) console.error(formatDiagnostic(configuration.file, warning));
      const { diskimages, providers } = configuration;
      const counts = [counted(diskimages, 'disk image'), counted(providers, 'provider')].join(', ');
      console.log(`${configuration.file} is good: ${counts}`);
    });
}

function counted({ length }: readonly unknown[], what: string): string {
  return `${length} ${what}${length === 1 ? '' : 's'}`;
}
