import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { BACKGROUND_LOG, BACKGROUND_OPTION, startInBackground } from './background.ts';
import { registerGearmand } from './gearmand.ts';
import {
  configOption,
  exampleOf,
  loggingConfigOption,
  logLevelOption,
  positiveInteger,
  secureOption,
  wholeNumber,
} from './options.ts';
import type { ServeOptions } from './serve.ts';
import { registerValidate } from './validate.ts';
import { addWebOptions, webArguments } from './web-options.ts';

const DEFAULT_PID_FILE = '/var/run/nodepool-builder/nodepool-builder.pid';

interface ServeCommandOptions extends Omit<ServeOptions, 'modules'> {
  readonly nodaemon: boolean;
}

/** `serve`, which also runs without a command, `gearmand` and `validate`. */
export function registerDaemon(program: Command, modules: Modules): void {
  program.optionsGroup('Options of "serve", which runs if there is no command:');
  addServeOptions(program);
  const serveCommand = program
    .command('serve')
    .summary('do the jobs of Gearman; runs if there is no command')
    .description(
      'Builds, uploads and deletes images as Gearman jobs ask for it: in the background, or with -d in the foreground. ' +
        'With --all-in-one it also runs a job server and the manager, which decides what is built, uploaded, kept and ' +
        'deleted. On several hosts, the command manage does the latter.',
    )
    .addHelpText('after', exampleOf('serve -d -c nodepool.yaml'));
  addServeOptions(serveCommand);
  serveCommand.action((options: ServeCommandOptions) => runServe(options, modules));
  registerGearmand(program);
  registerValidate(program, modules);
}

function addServeOptions(command: Command): void {
  command
    .addOption(configOption())
    .addOption(
      loggingConfigOption(`all to standard error; in the background to ${BACKGROUND_LOG} in images-dir`),
    )
    .addOption(logLevelOption('debug'))
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
    .option('--all-in-one', 'also run a job server and the manager: everything that one host needs');
  addWebOptions(command);
  command.addOption(new Option(`${BACKGROUND_OPTION} <log>`).hideHelp());
}

async function runServe(options: ServeCommandOptions, modules: Modules): Promise<void> {
  if (!options.nodaemon && options.inBackground === undefined) {
    return await serveInBackground(options, modules);
  }
  const { serve } = await import('./serve.ts'); // imported on demand: other commands start faster
  await serve({ ...options, modules });
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
  const { loggingConfig, logLevel, secure, keepOnFailure } = options;
  return [
    `--config=${resolve(options.config)}`,
    ...(loggingConfig === undefined ? [] : [`--logging-config=${resolve(loggingConfig)}`]),
    ...(logLevel === undefined ? [] : [`--log-level=${logLevel}`]),
    ...(secure === undefined ? [] : [`--secure=${resolve(secure)}`]),
    `--pidfile=${resolve(options.pidfile ?? DEFAULT_PID_FILE)}`,
    `--build-workers=${options.buildWorkers}`,
    `--upload-workers=${options.uploadWorkers}`,
    ...(options.embeddedGearmand ? ['--embedded-gearmand'] : []),
    ...(keepOnFailure === undefined ? [] : [`--keep-on-failure=${keepOnFailure}`]),
    ...(options.allInOne ? ['--all-in-one'] : []),
    ...webArguments(options),
  ];
}
