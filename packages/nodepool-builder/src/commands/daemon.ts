import { resolve } from 'node:path';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import { checkWebOptions, webArguments } from '../web/web-options.ts';
import { startInBackground } from './background.ts';
import { exampleOf } from './options.ts';
import { type ServeOptions, serve } from './serve.ts';
import { addServeOptions, DEFAULT_PID_FILE } from './serve-options.ts';

interface ServeCommandOptions extends Omit<ServeOptions, 'modules'> {
  readonly nodaemon: boolean;
}

/** `serve`, which also runs without a command. */
export function registerServe(program: Command, modules: Modules): void {
  const serveCommand = program
    .command('serve')
    .description(
      'Builds, uploads and deletes images as Gearman jobs request it: in the background, or with -d in the foreground. ' +
        'With --all-in-one it also runs a job server and the manager, which decides what is built, uploaded, kept and ' +
        'deleted. On several hosts, use the command manage for that.',
    )
    .addHelpText('after', exampleOf('serve -d -c nodepool.yaml'));
  addServeOptions(serveCommand);
  serveCommand.action((options: ServeCommandOptions) => runServe(options, modules));
}

async function runServe(options: ServeCommandOptions, modules: Modules): Promise<void> {
  checkWebOptions(options);
  if (!options.nodaemon && options.inBackground === undefined) {
    return await serveInBackground(options, modules);
  }
  await serve({ ...options, modules });
}

async function serveInBackground(options: ServeCommandOptions, modules: Modules): Promise<void> {
  const { config, secure, loggingConfig } = options;
  // Reports errors in the file on the terminal.
  const { configuration } = await loadConfiguration(config, { modules, secure });
  const { pid, log } = await startInBackground(backgroundArguments(options), configuration['images-dir']);
  const where =
    loggingConfig === undefined ? log : `as configured in ${loggingConfig}; standard error: ${log}`;
  console.log(`nodepool-builder serves in the background as process ${pid}; log: ${where}`);
}

/** Arguments of the background process. Paths are absolute, because it runs in `/`. */
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
