import { SYSTEM_PATH } from '../cleanup/privileged.ts';
import { hiddenValues } from '../process/hidden-values.ts';
import { createMask, visible } from './mask.ts';

/** Time limit of a command that uses no network, in milliseconds. */
const LOCAL_TIMEOUT = 20_000;

/** Size limit of the output of a command, in characters. */
const LARGEST_OUTPUT = 4 * 2 ** 20;

/** Configuration of all commands: repositories of other users are read, and none of their programs run. */
const CONFIGURATION = ['safe.directory=*', 'core.fsmonitor=false', 'core.hooksPath=/dev/null'];

/** Wraps a command so that it runs in the namespace of a build. */
export type Wrap = (command: string, args: readonly string[], cwd: string) => [string, string[]];

/** Settings of {@link runGit}. */
export interface GitOptions {
  readonly signal: AbortSignal;
  readonly wrap?: Wrap | undefined;
  /** Variables in addition, such as those of proxies; secrets among them are masked in the reason. */
  readonly environment?: Readonly<Record<string, string>>;
  /** In milliseconds. Default: that of a command without network. */
  readonly timeout?: number;
}

/** Output of a command, or the reason why it failed. */
export type GitResult = { readonly output: string } | { readonly reason: string };

/**
 * Runs git. A repository may name programs in its configuration, for hooks, monitors and transports; those do not run.
 * Settings of the user and of the system do not count.
 *
 * @throws the signal's reason
 */
export async function runGit(
  args: readonly string[],
  { signal, wrap, environment = {}, timeout = LOCAL_TIMEOUT }: GitOptions,
): Promise<GitResult> {
  const { execa } = await import('execa'); // not at the top, as in process/command.ts
  const all = [...CONFIGURATION.flatMap((option) => ['-c', option]), ...args];
  const [program, programArgs] = wrap?.('git', all, '/') ?? ['git', all];
  const result = await execa(program, programArgs, {
    cwd: '/',
    env: {
      PATH: SYSTEM_PATH,
      LC_ALL: 'C',
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_TERMINAL_PROMPT: '0',
      GIT_ALLOW_PROTOCOL: 'none', // a partial clone would fetch what it lacks
      ...environment,
    },
    extendEnv: false,
    stdin: 'ignore',
    reject: false,
    timeout,
    maxBuffer: LARGEST_OUTPUT,
    cleanup: false,
    cancelSignal: signal,
    stripFinalNewline: false,
  });
  signal.throwIfAborted();
  if (!result.failed) return { output: result.stdout };
  if (result.timedOut) return { reason: `git took longer than ${timeout / 1000} s` };
  const lines = (result.stderr ?? '').split('\n').filter((line) => line.trim() !== '');
  const line = lines.findLast((one) => /^(?:fatal|error): /.test(one)) ?? lines.at(-1) ?? 'git failed';
  return { reason: createMask(hiddenValues(environment))(visible(line.slice(0, 300))) };
}
