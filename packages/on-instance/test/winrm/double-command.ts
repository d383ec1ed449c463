import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

/** Output of a command, or its end. */
export interface DoubleOutput {
  readonly pieces: readonly { readonly stream: 'stdout' | 'stderr'; readonly bytes: Buffer }[];
  /** Exit code; undefined while it runs. */
  readonly exitCode: number | undefined;
}

/** Input and output of a program. */
export interface ProgramSite {
  readonly commandLine: string;
  /** All its input. Resolves at the end of the input. */
  readonly input: Promise<Buffer>;
  /** Aborts when the client ends the command. */
  readonly signal: AbortSignal;
  /** Resolves once the client has requested the output. */
  readonly write: (stream: 'stdout' | 'stderr', bytes: Buffer | string) => Promise<void>;
}

/** Runs a command. Resolves with the exit code. */
export type Program = (site: ProgramSite) => Promise<number>;

/** A command that runs in a shell of the double. */
export class DoubleCommand {
  readonly id: string = randomUUID().toUpperCase();
  readonly #pieces: { stream: 'stdout' | 'stderr'; bytes: Buffer; taken: () => void }[] = [];
  readonly #input: Buffer[] = [];
  readonly #inputEnd = Promise.withResolvers<Buffer>();
  readonly #ended = new AbortController();
  #news = Promise.withResolvers<void>();
  #exitCode: number | undefined;

  constructor(commandLine: string, program: Program) {
    const site: ProgramSite = {
      commandLine,
      input: this.#inputEnd.promise,
      signal: this.#ended.signal,
      write: (stream, bytes) =>
        new Promise((taken) => {
          this.#pieces.push({ stream, bytes: Buffer.from(bytes), taken });
          this.#news.resolve();
        }),
    };
    const exit = (code: number): void => {
      this.#exitCode ??= code;
      this.#news.resolve();
    };
    program(site).then(exit, () => exit(1));
  }

  /** Returns whether it still accepts input. */
  take(bytes: Buffer, isLast: boolean): boolean {
    if (this.#exitCode !== undefined) return false;
    this.#input.push(bytes);
    if (isLast) this.#inputEnd.resolve(Buffer.concat(this.#input));
    return true;
  }

  /** Returns one piece at a time, then the end; undefined if no output arrives within so many milliseconds. */
  async nextOutput(timeout: number): Promise<DoubleOutput | undefined> {
    if (this.#pieces.length === 0 && this.#exitCode === undefined) {
      const patience = new AbortController();
      const late = delay(timeout, undefined, { signal: patience.signal }).catch(() => {});
      await Promise.race([this.#news.promise, late]);
      patience.abort();
    }
    this.#news = Promise.withResolvers();
    const piece = this.#pieces.shift();
    if (piece !== undefined) {
      piece.taken();
      return { pieces: [piece], exitCode: undefined };
    }
    return this.#exitCode === undefined ? undefined : { pieces: [], exitCode: this.#exitCode };
  }

  end(): void {
    this.#ended.abort();
  }
}
