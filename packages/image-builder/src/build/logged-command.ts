import { SAYS_KILLED } from '../cleanup/build-namespace.ts';
import { MARKER } from '../cleanup/processes.ts';
import { type CommandResult, runCommand } from '../process/command.ts';
import type { Environment } from '../process/inherited-environment.ts';
import type { Staging } from '../repository/staging.ts';
import type { BuildLog } from './build-log.ts';

/** Settings of a {@link LoggedCommand}. */
export interface LoggedCommandOptions {
  /** Added to the environment of the build. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default: the build's directory. */
  readonly cwd?: string | undefined;
  /** Ends the command before the build does. */
  readonly signal?: AbortSignal;
  /** Called with each unchanged line of output. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** See `CommandOptions`. */
  readonly onPartialLine?: (text: string) => void;
  /** Changes a line before it is logged. Default: no change. */
  readonly clean?: (line: string) => string;
}

/** Runs a command of a build. Its output is logged, and it never outlives the build. */
export type LoggedCommand = (
  command: string,
  args: readonly string[],
  options?: LoggedCommandOptions,
) => Promise<CommandResult>;

/** The build that a command belongs to. */
interface CommandSite {
  readonly environment: Environment;
  readonly signal: AbortSignal;
  readonly staging: Staging;
  readonly log: BuildLog;
}

/** Creates the {@link LoggedCommand} of one build. */
export function createLoggedCommand({
  environment,
  signal: build,
  staging,
  log,
}: CommandSite): LoggedCommand {
  const { directory } = staging;
  return async (command, args, options = {}) => {
    const { env, cwd = directory, signal, onLine, onPartialLine, clean = (line) => line } = options;
    const namespace = await staging.namespace((reason) => void log.write(notIsolated(reason)));
    await log.write(`$ ${[command, ...args].join(' ')}`);
    let isKilled = false;
    const { exitCode, ...result } = await runCommand(command, args, {
      cwd,
      env: { ...environment, ...env, [MARKER]: directory },
      signal: signal === undefined ? build : AbortSignal.any([build, signal]),
      ...(namespace && { wrap: (...wrapped) => namespace.enter(...wrapped) }),
      onStart: (pid) => staging.recordProcessGroup(pid),
      onLine: (line) => {
        if (namespace !== undefined && SAYS_KILLED.test(line)) {
          isKilled = true;
          return undefined;
        }
        onLine?.(line);
        return log.write(clean(line));
      },
      ...(onPartialLine && { onPartialLine }),
    });
    return {
      ...result,
      ...(isKilled ? { signal: 'SIGKILL' } : exitCode !== undefined && { exitCode }),
      lastLines: result.lastLines
        .filter((line) => !(isKilled && SAYS_KILLED.test(line)))
        .map((line) => log.mask(clean(line))),
    };
  };
}

function notIsolated(reason: string): string {
  return (
    `# the build has no namespaces of its own (${reason}): a process with another session, directory and environment ` +
    'outlives it, and so does a mount outside its directories'
  );
}
