import type { BuildContextParts } from '../context.ts';
import { type CommandResult, runCommand } from '../process/command.ts';
import { MARKER } from '../remains/processes.ts';

/** Settings of a {@link LoggedCommand}. */
export interface LoggedCommandOptions {
  /** Added to the environment of the build. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default: the build's directory. */
  readonly cwd?: string | undefined;
  /** Ends the command before the build does. */
  readonly signal?: AbortSignal;
  /** Called with each line of output, as it is. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** See `CommandOptions`. */
  readonly onPartialLine?: (text: string) => void;
  /** What of a line goes to the log. Default: all. */
  readonly clean?: (line: string) => string;
}

/** Runs a command of a build: its output is in the build's log, and it ends with the build, come what may. */
export type LoggedCommand = (
  command: string,
  args: readonly string[],
  options?: LoggedCommandOptions,
) => Promise<CommandResult>;

/** The {@link LoggedCommand} of one build. */
export function createLoggedCommand({
  environment,
  signal: build,
  staging,
  log,
}: Pick<BuildContextParts, 'environment' | 'signal' | 'staging' | 'log'>): LoggedCommand {
  const { directory } = staging;
  return async (command, args, options = {}) => {
    const { env, cwd = directory, signal, onLine, onPartialLine, clean = (line) => line } = options;
    await log.write(`$ ${[command, ...args].join(' ')}`);
    const result = await runCommand(command, args, {
      cwd,
      env: { ...environment, ...env, [MARKER]: directory },
      signal: signal === undefined ? build : AbortSignal.any([build, signal]),
      onStart: (pid) => staging.recordProcessGroup(pid),
      onLine: (line) => {
        onLine?.(line);
        return log.write(clean(line));
      },
      ...(onPartialLine && { onPartialLine }),
    });
    return { ...result, lastLines: result.lastLines.map((line) => log.mask(clean(line))) };
  };
}
