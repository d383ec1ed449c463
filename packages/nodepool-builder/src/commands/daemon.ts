import { resolve } from 'node:path';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import { checkWebOptions } from '../web/web-options.ts';
import { startInBackground } from './background.ts';
import { exampleOf } from './options.ts';
import { type ServeOptions, serve } from './serve.ts';
import { addServeOptions, DEFAULT_PID_FILE } from './serve-options.ts';

interface ServeCommandOptions extends Omit<ServeOptions, 'modules'> {
  readonly nodaemon: boolean;
}

/** `serve`, which also runs without a command. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  const serveCommand = program
    .command('serve')
    .description(
      'Builds, uploads and deletes images as Gearman jobs request it: in the background, or with -d in the foreground. ' +
        'With --all-in-one it also runs a job server and the manager, which decides what is built, uploaded, kept and ' +
        'deleted. On several hosts, use the command manage for that.',
    )
    .addHelpText('after', exampleOf('serve -d -c nodepool.yaml'));
  addServeOptions(serveCommand);
  serveCommand.action(async () => runServe(serveCommand, await modules()));
}

async function runServe(command: Command, modules: Modules): Promise<void> {
  const options = command.opts<ServeCommandOptions>();
  const { config, secure, loggingConfig, nodaemon, inBackground } = options;
  checkWebOptions(options);
  if (nodaemon || inBackground !== undefined) return await serve({ ...options, modules });
  // Reports errors in the file on the terminal.
  const { configuration } = await loadConfiguration(config, { modules, secure });
  const { pid, log } = await startInBackground(backgroundArguments(command), configuration['images-dir']);
  const where =
    loggingConfig === undefined ? log : `as configured in ${loggingConfig}; standard error: ${log}`;
  console.log(`nodepool-builder serves in the background as process ${pid}; log: ${where}`);
}

/** Arguments of the background process. Paths are absolute, because it runs in `/`. */
function backgroundArguments(command: Command): string[] {
  const pidfile = resolve(DEFAULT_PID_FILE);
  const options: Record<string, string | number | boolean | undefined> = { pidfile, ...command.opts() };
  return command.options.flatMap((option) => {
    const value = options[option.attributeName()];
    if (value === undefined || value === false) return [];
    if (value === true) return [`${option.long}`];
    return [`${option.long}=${option.flags.endsWith('<file>') ? resolve(String(value)) : value}`];
  });
}
