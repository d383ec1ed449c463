import { setTimeout as delay } from 'node:timers/promises';
import { ImageError, type Instance } from '@nodepool-builder/image-builder';
import { withTimeout } from '@nodepool-builder/image-builder/module-kit';
import type { Login, RemoteFile, RemoteResult, RemoteShell } from './remote-shell.ts';
import { type MachineScript, type ScriptLanguage, WORK_DIRECTORY } from './script-language.ts';
import type { OnInstance } from './settings.ts';
import type { HostKey } from './ssh/host-key.ts';

/** Milliseconds between two login attempts: a service may answer before its users are created. */
const RETRY_INTERVAL = 1_000;

/** Parts of a {@link Machine}. */
export interface MachineParts {
  readonly instance: Instance;
  readonly login: Login;
  readonly hostKey: HostKey;
  readonly language: ScriptLanguage;
  readonly settings: OnInstance;
  readonly signal: AbortSignal;
  /** Receives the machine's output and the actions on it. */
  readonly log: (line: string) => void | Promise<void>;
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
    const { instance, login, hostKey, signal, settings, log } = parts;
    const { bootTimeout } = settings;
    let refusal: unknown;
    const isFirst = hostKey.pinned === undefined;
    const tryIt = async (trying: AbortSignal): Promise<RemoteShell> => {
      for (;;) {
        try {
          return await connect(parts, trying);
        } catch (error) {
          trying.throwIfAborted();
          if (!isPassing(error)) throw error;
          refusal = error;
        }
        await delay(RETRY_INTERVAL, undefined, { signal: trying });
      }
    };
    const shell = await withTimeout(bootTimeout, signal, tryIt, () => {
      const why = refusal === undefined ? 'nothing answers there' : (refusal as Error).message;
      throw new ImageError(
        'instance-failed',
        `instance ${instance.id} could not be logged in to within ${bootTimeout} s: ${why}`,
        { cause: refusal },
      );
    });
    if (isFirst) await log(`logged in; ${login.describe()}`);
    return new Machine(parts, shell);
  }

  /** Whether the connection is lost or closed. */
  get isClosed(): boolean {
    return this.#shell.isClosed;
  }

  /**
   * Runs a script on the machine.
   *
   * @param name of its file on the machine
   * @param files further files to write
   * @param onLine called with each line of output, which is also logged
   * @throws ImageError `instance-failed` if the connection is lost; `host-key-changed`
   */
  async run(
    name: string,
    script: MachineScript,
    {
      files = [],
      onLine,
      signal = this.#parts.signal,
    }: { files?: readonly RemoteFile[]; onLine?: (line: string) => void; signal?: AbortSignal } = {},
  ): Promise<RemoteResult> {
    const { language, settings, log } = this.#parts;
    await this.#confirmHostKey(signal);
    const path = `${WORK_DIRECTORY}/${name}${language.extension}`;
    await this.#shell.put([...files, { path, content: { text: script.text } }], signal);
    return await this.#shell.run(language.command(path, script, settings.username), {
      signal,
      onLine: (line) => {
        onLine?.(line);
        return log(line);
      },
    });
  }

  close(): void {
    this.#shell.close();
  }

  /** Consoles show host keys late, possibly after the login. */
  async #confirmHostKey(signal: AbortSignal): Promise<void> {
    const { instance, login, hostKey, log } = this.#parts;
    if (login.announcedKeys === undefined || hostKey.isConfirmed) return;
    hostKey.learn(login.announcedKeys(await instance.consoleLog({ signal })));
    if (hostKey.isConfirmed) await log(login.describe());
  }
}

async function connect(
  { instance, login, hostKey }: MachineParts,
  signal: AbortSignal,
): Promise<RemoteShell> {
  const address = await instance.waitReachable(login.probe, { signal });
  if (login.announcedKeys !== undefined && hostKey.pinned === undefined) {
    hostKey.learn(login.announcedKeys(await instance.consoleLog({ signal })));
  }
  return await login.connect(address, signal);
}

/** Whether another attempt may succeed. A machine that has ended does not come back. */
function isPassing(error: unknown): boolean {
  return error instanceof ImageError && error.code === 'login-refused';
}
