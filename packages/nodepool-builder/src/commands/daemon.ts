import { resolve } from 'node:path';
import type { ImageBuilderClass } from '@nodepool-builder/image-builder';
import { type Command, Option } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import { BACKGROUND_LOG, BACKGROUND_OPTION, startInBackground } from './background.ts';
import { configOption, loggingConfigOption, positiveInteger, wholeNumber } from './options.ts';
import { type ServeOptions, serve } from './serve.ts';

const DEFAULT_PID_FILE = '/var/run/nodepool-builder/nodepool-builder.pid';

interface DaemonOptions extends Omit<ServeOptions, 'builders'> {
  readonly nodaemon: boolean;
}

/** The default command: serve until told to stop. */
export function registerDaemon(
  program: Command,
  builders: Readonly<Record<string, ImageBuilderClass>>,
): void {
  program
    .addOption(configOption())
    .addOption(
      loggingConfigOption(`all to standard error; in the background to ${BACKGROUND_LOG} in images-dir`),
    )
    .option(
      '-s, --secure <file>',
      'YAML file with env-vars of diskimages that are kept apart; builds get them, logs do not show them',
    )
    .option('-p, --pidfile <file>', `pid file (default: ${DEFAULT_PID_FILE}; with -d none)`)
    .option('-d, --nodaemon', 'stay in the foreground', false)
    .option('--build-workers <n>', 'how many builds run at a time', wholeNumber, 1)
    .option('--upload-workers <n>', 'how many uploads and deletions run at a time', wholeNumber, 4)
    .option(
      '--embedded-gearmand',
      'run a job server too, on loopback (default: if gearman-servers names none)',
    )
    .addOption(
      new Option(
        '--keep-on-failure [seconds]',
        'keep the machines of failed on-instance builds, whatever the configuration says',
      )
        .argParser(positiveInteger)
        .preset(3600),
    )
    .option('--all-in-one', 'run a job server and the manager too: all that one host needs')
    .addOption(new Option(`${BACKGROUND_OPTION} <log>`).hideHelp())
    .action(async (options: DaemonOptions) => {
      if (options.nodaemon || options.inBackground !== undefined) await serve({ ...options, builders });
      else await serveInBackground(options, Object.keys(builders));
    });
}

async function serveInBackground(options: DaemonOptions, builders: readonly string[]): Promise<void> {
  // Errors in the file are shown here, where a person reads them.
  const { configuration } = await loadConfiguration(options.config, { builders, secure: options.secure });
  const { pid, log } = await startInBackground(backgroundArguments(options), configuration.imagesDir);
  const { loggingConfig } = options;
  const where = loggingConfig === undefined ? log : `as ${loggingConfig} says; standard error: ${log}`;
  console.log(`nodepool-builder serves in the background as process ${pid}; log: ${where}`);
}

/** The copy in the background runs in `/`: what is relative here has to be absolute there. */
function backgroundArguments(options: DaemonOptions): string[] {
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
