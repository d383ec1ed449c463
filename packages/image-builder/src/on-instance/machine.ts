import { setTimeout as delay } from 'node:timers/promises';
import { ImageError } from '../errors.ts';
import type { Instance } from '../instance/instance-provider.ts';
import { within } from '../within.ts';
import type { HostKey } from './host-key.ts';
import type { Login, RemoteFile, RemoteResult, RemoteShell } from './remote-shell.ts';
import { type MachineScript, type ScriptLanguage, WORK_DIRECTORY } from './script-language.ts';
import type { OnInstance } from './settings.ts';

/** Between two tries to log in, in milliseconds: a service may answer before its users are made. */
const RETRY_INTERVAL = 1_000;

/** What a {@link Machine} is made of. */
export interface MachineParts {
  readonly instance: Instance;
  readonly login: Login;
  readonly hostKey: HostKey;
  readonly language: ScriptLanguage;
  readonly settings: OnInstance;
  readonly signal: AbortSignal;
  /** Takes the lines that come from the machine, and what is done with it. */
  readonly log: (line: string) => void | Promise<void>;
}

/** An instance that one is logged in to. After a step that restarted it, one logs in again. */
export class Machine {
  readonly instance: Instance;
  readonly #parts: MachineParts;
  #shell: RemoteShell | undefined;

  constructor(parts: MachineParts) {
    this.instance = parts.instance;
    this.#parts = parts;
  }

  /**
   * Waits until one is logged in.
   *
   * @throws ImageError `instance-failed`, `host-key-changed`
   */
  async logIn(): Promise<RemoteShell> {
    if (this.#shell?.isClosed === false) return this.#shell;
    const { signal, settings, hostKey, log } = this.#parts;
    const { bootTimeout } = settings;
    let refusal: unknown;
    const isFirst = hostKey.pinned === undefined;
    const tryIt = async (trying: AbortSignal): Promise<RemoteShell> => {
      for (;;) {
        try {
          return await this.#connect(trying);
        } catch (error) {
          trying.throwIfAborted();
          if (!isPassing(error)) throw error;
          refusal = error;
        }
        await delay(RETRY_INTERVAL, undefined, { signal: trying });
      }
    };
    this.#shell = await within(bootTimeout, signal, tryIt, () => {
      const why = refusal === undefined ? 'nothing answers there' : (refusal as Error).message;
      throw new ImageError(
        'instance-failed',
        `instance ${this.instance.id} could not be logged in to within ${bootTimeout} s: ${why}`,
        { cause: refusal },
      );
    });
    if (isFirst) await log(`logged in; ${hostKey.describe()}`);
    return this.#shell;
  }

  get isLoggedIn(): boolean {
    return this.#shell?.isClosed === false;
  }

  /**
   * Runs a script on the machine.
   *
   * @param name of its file there.
   * @param files to put there besides.
   * @param onLine called with each line of output, which is in the log as well.
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
    const shell = await this.logIn();
    await this.#confirmHostKey();
    const path = `${WORK_DIRECTORY}/${name}${language.extension}`;
    await shell.put([...files, { path, content: { text: script.text } }], signal);
    return await shell.run(language.command(path, script, settings.username), {
      signal,
      onLine: (line) => {
        onLine?.(line);
        return log(line);
      },
    });
  }

  close(): void {
    this.#shell?.close();
  }

  async #connect(signal: AbortSignal): Promise<RemoteShell> {
    const { login, hostKey } = this.#parts;
    const address = await this.instance.waitReachable(login.probe, { signal });
    if (hostKey.pinned === undefined) hostKey.learn(await this.instance.consoleLog({ signal }));
    return await login.connect(address, signal);
  }

  /** Consoles show host keys late: when somebody is logged in already. */
  async #confirmHostKey(): Promise<void> {
    const { hostKey, signal, log } = this.#parts;
    if (hostKey.isConfirmed || hostKey.pinned === undefined) return;
    hostKey.learn(await this.instance.consoleLog({ signal }));
    if (hostKey.isConfirmed) await log(hostKey.describe());
  }
}

/** Whether it may go better the next time. A machine that has ended does not come back. */
function isPassing(error: unknown): boolean {
  return error instanceof ImageError && error.code === 'login-refused';
}
