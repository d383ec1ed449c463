import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { ConfigurationError, formatDiagnostic } from '../configuration/diagnostic.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { jsonSchema } from '../configuration/schema.ts';
import type { Modules } from '../modules.ts';
import { BACKGROUND_LOG, BACKGROUND_OPTION, startInBackground } from './background.ts';
import { registerGearmand } from './gearmand.ts';
import {
  configOption,
  exampleOf,
  loggingConfigOption,
  positiveInteger,
  secureOption,
  wholeNumber,
} from './options.ts';
import type { ServeOptions } from './serve.ts';

const DEFAULT_PID_FILE = '/var/run/nodepool-builder/nodepool-builder.pid';

interface ServeCommandOptions extends Omit<ServeOptions, 'modules'> {
  readonly nodaemon: boolean;
}

interface ValidateOptions {
  readonly config: string;
  readonly schema?: true;
}

/** `serve`, which also runs without a command, `gearmand` and `validate`. */
export function registerDaemon(program: Command, modules: Modules): void {
  program.optionsGroup('Options of "serve", which runs if there is no command:');
  addServeOptions(program, modules);
  const serveCommand = program
    .command('serve')
    .summary('do the jobs of Gearman; runs if there is no command')
    .description(
      'Builds, uploads and deletes images as Gearman jobs ask for it: in the background, or with -d in the foreground. ' +
        'With --all-in-one it also runs a job server and the manager, which decides what is built, uploaded, kept and ' +
        'deleted. On several hosts, the command manage does the latter.',
    )
    .addHelpText('after', exampleOf('serve -d -c nodepool.yaml'));
  addServeOptions(serveCommand, modules);
  registerGearmand(program);
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
    .action((options: ValidateOptions) => validate(options, modules));
}

function addServeOptions(command: Command, modules: Modules): void {
  command
    .addOption(configOption())
    .addOption(
      loggingConfigOption(`all to standard error; in the background to ${BACKGROUND_LOG} in images-dir`),
    )
    .addOption(secureOption())
    .option('-p, --pidfile <file>', `pid file (default: ${DEFAULT_PID_FILE}; with -d none)`)
    .option('-d, --nodaemon', 'stay in the foreground', false)
    .option('--build-workers <n>', 'number of builds at a time', wholeNumber, 1)
    .option('--upload-workers <n>', 'number of uploads and deletions at a time', wholeNumber, 4)
    .option(
      '--embedded-gearmand',
      'also run a job server, on loopback (default: only if gearman-servers names none)',
    )
    .addOption(
      new Option(
        '--keep-on-failure [seconds]',
        'keep the instances of failed on-instance builds for this time, whatever the configuration says',
      )
        .argParser(positiveInteger)
        .preset('3600'),
    )
    .option('--all-in-one', 'also run a job server and the manager: everything that one host needs')
    .addOption(new Option(`${BACKGROUND_OPTION} <log>`).hideHelp())
    .action(async (options: ServeCommandOptions) => {
      if (!options.nodaemon && options.inBackground === undefined) {
        return await serveInBackground(options, modules);
      }
      const { serve } = await import('./serve.ts'); // imported on demand: other commands start faster
      await serve({ ...options, modules });
    });
}

async function serveInBackground(options: ServeCommandOptions, modules: Modules): Promise<void> {
  const { config, secure, loggingConfig } = options;
  // Report errors in the file here, on the terminal.
  const { configuration } = await loadConfiguration(config, { modules, secure });
  const { pid, log } = await startInBackground(backgroundArguments(options), configuration['images-dir']);
  const where = loggingConfig === undefined ? log : `as ${loggingConfig} says; standard error: ${log}`;
  console.log(`nodepool-builder serves in the background as process ${pid}; log: ${where}`);
}

/** Arguments of the background process, with absolute paths: it runs in `/`. */
function backgroundArguments(options: ServeCommandOptions): string[] {
  const { loggingConfig, secure, keepOnFailure } = options;
  return [
    `--config=${resolve(options.config)}`,
    ...(loggingConfig === undefined ? [] : [`--logging-config=${resolve(loggingConfig)}`]),
    ...(secure === undefined ? [] : [`--secure=${resolve(secure)}`]),
    `--pidfile=${resolve(options.pidfile ?? DEFAULT_PID_FILE)}`,
    `--build-workers=${options.buildWorkers}`,
    `--upload-workers=${options.uploadWorkers}`,
    ...(options.embeddedGearmand ? ['--embedded-gearmand'] : []),
    ...(keepOnFailure === undefined ? [] : [`--keep-on-failure=${keepOnFailure}`]),
    ...(options.allInOne ? ['--all-in-one'] : []),
  ];
}

async function validate({ config, schema }: ValidateOptions, modules: Modules): Promise<void> {
  const checksHost = schema === undefined;
  const { configuration, warnings, plugins } = await loadConfiguration(config, { modules, checksHost });
  if (schema) {
    console.log(JSON.stringify(jsonSchema(plugins.modules), null, 2));
    return;
  }
  const { file: path, diskimages, providers } = configuration;
  if (warnings.some(({ severity }) => severity === 'job-error')) throw new ConfigurationError(path, warnings);
  for (const warning of warnings) console.error(formatDiagnostic(path, warning));
  console.log(`${path} is good: ${counted(diskimages, 'disk image')}, ${counted(providers, 'provider')}`);
}

function counted({ length }: readonly unknown[], what: string): string {
  return `${length} ${what}${length === 1 ? '' : 's'}`;
}
