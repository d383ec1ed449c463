import { ImageError, type Instance } from '@nodepool-builder/image-builder';
import { DecisiveLines, type FullBuildContext, withTimeout } from '@nodepool-builder/image-builder/internal';
import { poll } from '@nodepool-builder/image-builder/plugin';
import type { OnInstance } from './on-instance-settings.ts';
import { POSIX_SCRIPTS } from './posix-scripts.ts';
import { POWERSHELL_SCRIPTS } from './powershell-scripts.ts';
import type { Login, RemoteCommandOptions, RemoteFile, RemoteResult, RemoteShell } from './remote-shell.ts';
import { type ScriptLanguage, WORK_DIRECTORY } from './script-language.ts';

/** Scripts by the setting `shell`. */
export const SCRIPT_LANGUAGES: Readonly<Record<OnInstance['shell'], ScriptLanguage>> = {
  posix: POSIX_SCRIPTS,
  powershell: POWERSHELL_SCRIPTS,
};

/** Maximum seconds between two login attempts. A service may respond before its users are created. */
const RETRY_INTERVAL = 1;

/** Parts of a {@link Machine}. Its output is written to the build's log. */
export interface MachineParts {
  readonly instance: Instance;
  readonly login: Login;
  readonly settings: OnInstance;
  readonly context: Pick<FullBuildContext, 'signal' | 'buildLog'>;
}

/** Settings of {@link Machine.run}. */
interface ScriptOptions extends Partial<RemoteCommandOptions> {
  /** Further files to write. */
  readonly files?: readonly RemoteFile[];
  /** True to run the script with administrator rights. */
  readonly asAdministrator?: boolean;
}

/** An instance with a login. */
export class Machine {
  readonly #parts: MachineParts;
  readonly #shell: RemoteShell;

  private constructor(parts: MachineParts, shell: RemoteShell) {
    this.#parts = parts;
    this.#shell = shell;
  }

  /**
   * Waits for the login.
   *
   * @throws ImageError `instance-failed`, `host-key-changed`
   */
  static async logIn(parts: MachineParts): Promise<Machine> {
    const { instance, login, settings, context } = parts;
    const { 'boot-timeout': bootTimeout } = settings;
    const isFirst = login.hostKey.pinned === undefined;
    let lastError: ImageError | undefined;
    const logIn = async (signal: AbortSignal): Promise<RemoteShell | undefined> => {
      try {
        return await connect(parts, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ImageError) || error.code !== 'login-refused') throw error;
        lastError = error;
        return undefined;
      }
    };
    const retry = (signal: AbortSignal): Promise<RemoteShell> =>
      poll(() => logIn(signal), { interval: RETRY_INTERVAL, signal });
    const shell = await withTimeout(bootTimeout, context.signal, retry, () => {
      const reason = lastError?.message ?? 'nothing responds there';
      const message = `cannot log in to instance ${instance.id} within ${bootTimeout} s: ${reason}`;
      return new ImageError('instance-failed', message, { cause: lastError });
    });
    if (isFirst) await context.buildLog.write(`logged in; ${login.describe()}`);
    return new Machine(parts, shell);
  }

  /** True if the connection is lost or closed. */
  get isClosed(): boolean {
    return this.#shell.isClosed;
  }

  /**
   * Runs a script.
   *
   * @param title name in messages
   * @param name file name on the machine
   * @param options its reader of the output replaces the build's log
   * @throws ImageError `command-failed` unless it exits with 0; `instance-failed` if the connection is lost;
   * `host-key-changed`
   */
  async run(title: string, name: string, script: string, options: ScriptOptions = {}): Promise<void> {
    const { settings, context } = this.#parts;
    const { files = [], asAdministrator = false, signal = context.signal } = options;
    const { onLine = (line) => context.buildLog.write(line) } = options;
    const { extension, command } = SCRIPT_LANGUAGES[settings.shell];
    await this.#confirmHostKey(signal);
    const path = `${WORK_DIRECTORY}/${name}${extension}`;
    await this.#shell.put([...files, { path, content: { text: script } }], signal);
    const decisive = new DecisiveLines();
    const result = await this.#shell.run(command(path, settings.username, asAdministrator), {
      signal,
      onLine: (line) => {
        decisive.add(line);
        return onLine(line);
      },
    });
    if (result.exitCode !== 0) throw this.#scriptError(title, result, decisive.lines);
  }

  close(): void {
    this.#shell.close();
  }

  #scriptError(title: string, { exitCode, signal }: RemoteResult, lines: readonly string[]): ImageError {
    const output = lines.length === 0 ? '' : `, saying: ${lines.join(' / ')}`;
    const message = `${title} ended with ${signal ?? `exit code ${exitCode}`}${output}`;
    return new ImageError('command-failed', this.#parts.context.buildLog.mask(message));
  }

  /** Checks the host key against the console. Consoles show host keys late, possibly after the login. */
  async #confirmHostKey(signal: AbortSignal): Promise<void> {
    const { login, context } = this.#parts;
    if (login.announcedKeys === undefined || login.hostKey.isConfirmed) return;
    await learnHostKey(this.#parts, signal);
    if (login.hostKey.isConfirmed) await context.buildLog.write(login.describe());
  }
}

async function connect(parts: MachineParts, signal: AbortSignal): Promise<RemoteShell> {
  const { instance, login } = parts;
  const address = await instance.waitReachable(login.probe, { signal });
  if (login.hostKey.pinned === undefined) await learnHostKey(parts, signal);
  return await login.connect(address, signal, async () => instance.password?.({ signal }));
}

async function learnHostKey({ instance, login }: MachineParts, signal: AbortSignal): Promise<void> {
  if (login.announcedKeys === undefined) return;
  login.hostKey.learn(login.announcedKeys(await instance.consoleLog({ signal })));
}
