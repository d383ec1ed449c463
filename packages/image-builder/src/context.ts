import type { DiskImage } from './disk-image.ts';
import type { ImageFormat } from './formats.ts';

/** Settings of one command, see {@link BuildContext.run}. */
export interface RunOptions {
  /** Added to {@link BuildContext.environment}. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default {@link BuildContext.directory}. */
  readonly cwd?: string;
  /** Called with each line of the command's output. */
  readonly onLine?: (line: string) => void;
}

/** What a builder has to work with during one build. Its functions may be taken out by destructuring. */
export interface BuildContext {
  readonly imageId: string;
  /** `diskimages[].name`. */
  readonly imageName: string;
  readonly diskimage: DiskImage;
  /** The formats to make: each needs its {@link output}. At least one. */
  readonly formats: readonly ImageFormat[];
  /** A private working directory on the file system of `images-dir`; it goes away when the build ends. */
  readonly directory: string;
  /** The environment that commands inherit. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborts when the build has to stop: its time is over, or nobody wants it any more. */
  readonly signal: AbortSignal;
  /** Where the image in this format has to be left. */
  output(format: ImageFormat): string;
  /**
   * Runs a command in a process group of its own, its input closed, its output in the build's log. When the
   * build has to stop, the group gets SIGTERM, and SIGKILL ten seconds later.
   *
   * @throws ImageError `command-not-found`, `command-failed`, `disk-full`, `build-timeout`, `build-aborted`
   */
  run(command: string, args?: readonly string[], options?: RunOptions): Promise<void>;
  /** Writes a line to the build's log. */
  log(line: string): void;
  /** Says how far the build has come; `done` of `total`, in any unit. */
  progress(done: number, total: number): void;
  /**
   * A private directory below `parent`, for a builder whose temporary files belong elsewhere. It goes away
   * with the build, with what is mounted there, even if this process dies.
   */
  temporaryDirectory(parent: string): Promise<string>;
}
