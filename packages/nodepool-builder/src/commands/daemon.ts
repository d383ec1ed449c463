import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { BACKGROUND_LOG, BACKGROUND_OPTION, startInBackground } from './background.ts';
import { configOption, loggingConfigOption, positiveInteger, secureOption, wholeNumber } from './options.ts';
import { type ServeOptions, serve } from './serve.ts';

const DEFAULT_PID_FILE = '/var/run/nodepool-builder/nodepool-builder.pid';

interface ServeCommandOptions extends Omit<ServeOptions, 'modules'> {
  readonly nodaemon: boolean;
}

/** `serve`, which also runs without a command: serves until a signal stops it. */
export function registerServe(program: Command, modules: Modules): void {
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
    .addHelpText('after', '\nExample:\n  $ nodepool-builder serve -d -c nodepool.yaml');
  addServeOptions(serveCommand, modules);
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
        .preset(3600),
    )
    .option('--all-in-one', 'also run a job server and the manager: everything that one host needs')
    .addOption(new Option(`${BACKGROUND_OPTION} <log>`).hideHelp())
    .action(async (options: ServeCommandOptions) => {
      if (options.nodaemon || options.inBackground !== undefined) await serve({ ...options, modules });
      else await serveInBackground(options, modules);
    });
}

async function serveInBackground(options: ServeCommandOptions, modules: Modules): Promise<void> {
  // Report errors in the file here, on the terminal.
  const { configuration } = await loadConfiguration(options.config, { modules, secure: options.secure });
  const { pid, log } = await startInBackground(backgroundArguments(options), configuration.imagesDir);
  const { loggingConfig } = options;
  const where = loggingConfig === undefined ? log : `as ${loggingConfig} says; standard error: ${log}`;
  console.log(`nodepool-builder serves in the background as process ${pid}; log: ${where}`);
}

/** Arguments of the background process, with absolute paths: it runs in `/`. */
function backgroundArguments(options: ServeCommandOptions): string[] {
  return [
    `--config=${resolve(options.config)}`,
    ...(options.loggingConfig === undefined ? [] : [`--logging-config=${resolve(options.loggingConfig)}`]),
    ...(options.secure === undefined ? [] : [`--secure=${resolve(options.secure)}`]),
    `--pidfile=${resolve(options.pidfile ?? DEFAULT_PID_FILE)}`,
    `--build-workers=${options.buildWorkers}`,
    `--upload-workers=${options.uploadWorkers}`,
    ...(options.embeddedGearmand ? ['--embedded-gearmand'] : []),
    ...(options.keepOnFailure === undefined ? [] : [`--keep-on-failure=${options.keepOnFailure}`]),
    ...(options.allInOne ? ['--all-in-one'] : []),
  ];
}
