import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Default account of Azurite, with its published key. */
const ACCOUNT = 'devstoreaccount1';
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** A running Azurite of the package `azurite`, which keeps its blobs in a temporary directory. */
export class Azurite implements AsyncDisposable {
  /** `http://127.0.0.1:10000`. */
  readonly url: string;
  readonly account: string = ACCOUNT;
  readonly key: string = KEY;
  readonly #process: ChildProcess;
  readonly #directory: string;

  private constructor(url: string, process: ChildProcess, directory: string) {
    this.url = url;
    this.#process = process;
    this.#directory = directory;
  }

  /** Starts one on a free loopback port. @throws Error if the package is not installed, or Azurite does not start */
  static async start(): Promise<Azurite> {
    const program = createRequire(import.meta.url).resolve('azurite/dist/src/blob/main.js');
    const directory = await mkdtemp(join(tmpdir(), 'azurite-'));
    const options = ['--blobPort', '0', '--location', directory, '--silent', '--disableTelemetry'];
    const azurite = spawn(process.execPath, [program, ...options, '--skipApiVersionCheck'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for await (const line of createInterface(azurite.stdout)) {
      const url = /successfully listen(?:s|ing) (?:on|at) (http:\S+)/i.exec(line)?.[1];
      if (url === undefined) continue;
      azurite.stdout.resume();
      return new Azurite(url.replace(/\/$/, ''), azurite, directory);
    }
    await rm(directory, { recursive: true, force: true });
    throw new Error('Azurite does not start');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      this.#process.kill('SIGKILL');
      await ended;
    }
    await rm(this.#directory, { recursive: true, force: true });
  }
}
