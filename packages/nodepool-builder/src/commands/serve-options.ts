import { type Command, Option } from 'commander';
import { positiveInteger, wholeNumber } from '../terms/option-values.ts';
import { addWebOptions } from '../web/web-options.ts';
import { configOption, loggingConfigOption, logLevelOption, secureOption } from './options.ts';

/** Option of the background process: the path of its log, which also gets standard output and standard error. */
export const BACKGROUND_OPTION = '--in-background';

/** Default path of the log of the background process, relative to `images-dir`. */
export const BACKGROUND_LOG = '.nodepool-builder/nodepool-builder.log';

/** Default path of the pid file of the background process. */
export const DEFAULT_PID_FILE = '/var/run/nodepool-builder/nodepool-builder.pid';

/** Options of `serve`, which may also stand before a command. */
export function addServeOptions(command: Command): void {
  command
    .addOption(configOption())
    .addOption(
      loggingConfigOption(`all to standard error; in the background to ${BACKGROUND_LOG} in images-dir`),
    )
    .addOption(logLevelOption('debug'))
    .addOption(secureOption())
    .option('-p, --pidfile <file>', `pid file (default: with -d none, else ${DEFAULT_PID_FILE})`)
    .option('-d, --nodaemon', 'stay in the foreground', false)
    .option('--build-workers <n>', 'number of concurrent builds', wholeNumber, 1)
    .option('--upload-workers <n>', 'number of concurrent uploads and deletions', wholeNumber, 4)
    .option(
      '--embedded-gearmand',
      'also run a job server, on loopback (default: only if gearman-servers names none)',
    )
    .addOption(
      new Option(
        '--keep-on-failure [seconds]',
        'keep the instances of failed on-instance builds for this time, regardless of the configuration',
      )
        .argParser(positiveInteger)
        .preset('3600'),
    )
    .option('--all-in-one', 'also run a job server and the manager: everything that one host needs');
  addWebOptions(command);
  command.addOption(new Option(`${BACKGROUND_OPTION} <log>`).hideHelp());
}
