import { writeFile } from 'node:fs/promises';
import type { Instance, InstanceProvider, LaunchRequest } from '@nodepool-builder/image-builder';
import { unlessAborted } from '../../../image-builder/src/cancellation.ts';
import { waitForPort } from '../../../image-builder/src/instance/wait-for-port.ts';
import type { ProgramSite } from './double-command.ts';
import { announcement, CERTIFICATE, Windows } from './windows.ts';
import { WinrmDouble } from './winrm-double.ts';

/** Runs a script of the builder on a machine. Resolves with the exit code. */
export type RunScript = (
  name: string,
  script: string,
  site: ProgramSite,
  instance: WindowsInstance,
) => Promise<number>;

/** A machine with only WinRM, without PowerShell. The test defines what scripts do. */
export class WindowsInstance implements Instance, InstanceProvider {
  readonly name = 'windows';
  readonly id = 'machine-1';
  readonly launchedAt = new Date();
  buildId = '';
  /** Certificate whose fingerprint is printed on the console. */
  announced = CERTIFICATE;
  readonly #runScript: RunScript;
  readonly #stopped = Promise.withResolvers<void>();
  #double: WinrmDouble | undefined;
  #isOn = false;
  #isThere = false;

  constructor(runScript: RunScript) {
    this.#runScript = runScript;
  }

  async launch({ buildId }: LaunchRequest): Promise<Instance> {
    this.buildId = buildId;
    const windows: Windows = new Windows({
      powershell: async (site) => {
        const path = site.commandLine.split(' ').at(-1) ?? '';
        return await this.#runScript(path, String(windows.files.get(path)), site, this);
      },
    });
    this.#double = await WinrmDouble.start({ ...CERTIFICATE, program: windows.program, password: 'secret' });
    this.#isOn = true;
    this.#isThere = true;
    return this;
  }

  /** Powers off immediately, in the middle of any work. */
  async powerOff(): Promise<void> {
    this.#isOn = false;
    await this.#double?.[Symbol.asyncDispose]();
    this.#stopped.resolve();
  }

  async list(): Promise<readonly Instance[]> {
    return this.#isThere ? [this] : [];
  }

  async state(): Promise<'running' | 'stopped'> {
    return this.#isOn ? 'running' : 'stopped';
  }

  async address(): Promise<{ host: string; port: number }> {
    return { host: '127.0.0.1', port: this.#double?.port ?? 0 };
  }

  readonly waitReachable: Instance['waitReachable'] = async (probe, { signal } = {}) => {
    const address = await this.address();
    await waitForPort(address, probe, () => Promise.resolve(), signal);
    return address;
  };

  /** The machine also has an SSH server; WinRM ignores its keys. */
  async consoleLog(): Promise<string> {
    const ofSsh = `-----BEGIN SSH HOST KEY KEYS-----\nssh-ed25519 AAAA\n-----END SSH HOST KEY KEYS-----\n`;
    return ofSsh + announcement(this.announced);
  }

  async stop(): Promise<void> {
    await this.powerOff();
  }

  readonly waitStopped: Instance['waitStopped'] = async ({ signal } = {}) => {
    await (signal === undefined ? this.#stopped.promise : unlessAborted(this.#stopped.promise, signal));
  };

  readonly capture: Instance['capture'] = async () => ({
    formats: ['raw'],
    save: async (_format, path) => await writeFile(path, 'disk'),
  });

  async destroy(): Promise<void> {
    await this.powerOff();
    this.#isThere = false;
  }
}
