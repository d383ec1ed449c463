import type { BuildLog } from './build/build-log.ts';
import type { LoggedCommand } from './build/logged-command.ts';
import type { DiskImage } from './disk-image.ts';
import { ImageError } from './errors.ts';
import type { ImageFormat } from './formats.ts';
import type { CommandResult } from './process/command.ts';
import { imageFileName } from './repository/layout.ts';
import type { Staging } from './repository/staging.ts';
import type { StateDirectory } from './repository/state-directory.ts';
import type { Progress, Snapshot } from './types.ts';

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
  /** The environment that commands begin with. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The largest disk in bytes that may be converted; undefined for the default of 256 GiB. */
  readonly largestDisk?: number | undefined;
  /** Aborts when the build has to stop: its time is over, or nobody wants it any more. */
  readonly signal: AbortSignal;
  /** Where the image in this format has to be left. */
  readonly output: (format: ImageFormat) => string;
  /**
   * Runs a command in a process group of its own, its input closed, its output in the build's log. As root, the commands
   * of a build share a mount namespace: this process does not see what they mount. When the build has to stop, the group
   * gets SIGTERM, and SIGKILL ten seconds later.
   *
   * @throws ImageError `command-not-found`, `command-failed`, `disk-full`, `build-timeout`, `build-aborted`
   */
  readonly run: (command: string, args?: readonly string[], options?: RunOptions) => Promise<void>;
  /** Writes a line to the build's log. */
  readonly log: (line: string) => void;
  /** The build's log itself: where it lies, what takes secrets out of a text, and a `write` that tells when to go on. */
  readonly buildLog: Pick<BuildLog, 'path' | 'mask' | 'write'>;
  /** Says how far the build has come; `done` of `total`, in any unit. */
  readonly progress: (done: number, total: number) => void;
  /**
   * A private directory below `parent`, for a builder whose temporary files belong elsewhere. It goes away
   * with the build, with what is mounted there, even if this process dies.
   */
  readonly temporaryDirectory: (parent: string) => Promise<string>;
  /**
   * A directory of the image name's on the file system of `images-dir`, with what an earlier build left there that
   * failed or died: downloads to go on with, say. One build has it at a time, so that this waits while another does. It
   * goes away when an image is published; if no build has used it for a week, when the repository is opened again.
   *
   * @throws the signal's reason
   */
  readonly stateDirectory: () => Promise<string>;
  /** Path of the directory for records that outlive a build, below the state of `images-dir`. Its user creates it. */
  readonly recordDirectory: (name: string) => string;
  /** Sets the creation time of an image that was made elsewhere. A time in the future counts as now, with a warning. */
  readonly setBuiltAt: (time: Date) => void;
  /**
   * Says that the image lies in a provider already.
   *
   * @param settle called when the image is published, or when it is sure not to be: then it removes the snapshot.
   */
  readonly addSnapshot: (snapshot: Snapshot, settle: Settle) => void;
}

/** Called at the end of a build, when its image is published or was given up. */
export type Settle = (isPublished: boolean) => Promise<void>;

/** What a {@link BuildContext} is made of. */
export interface BuildContextParts
  extends Pick<BuildContext, 'imageId' | 'diskimage' | 'formats' | 'environment' | 'largestDisk' | 'signal'> {
  readonly staging: Staging;
  readonly state: StateDirectory;
  readonly log: BuildLog;
  readonly recordDirectory: (name: string) => string;
  readonly onProgress: (progress: Progress) => void;
  readonly setBuiltAt: (time: Date) => void;
  readonly addSnapshot: (snapshot: Snapshot, settle: Settle) => void;
}

/** The context of one build, whose commands `runLogged` runs. */
export function createBuildContext(parts: BuildContextParts, runLogged: LoggedCommand): BuildContext {
  const { imageId, diskimage, formats, environment, signal, staging, state, log, onProgress } = parts;
  const { recordDirectory, largestDisk, setBuiltAt, addSnapshot } = parts;
  const { directory } = staging;
  return {
    imageId,
    imageName: diskimage.name,
    diskimage,
    formats,
    directory,
    environment,
    largestDisk,
    signal,
    output: (format) => staging.path(imageFileName(imageId, format)),
    run: async (command, args = [], { env, cwd, onLine } = {}) => {
      const result = await runLogged(command, args, { env, cwd, onLine });
      if (result.exitCode !== 0) throw commandError(command, result, log.path);
    },
    log: (line) => void log.write(line),
    progress: (done, total) => onProgress({ done, total }),
    temporaryDirectory: (parent) => staging.temporaryDirectory(parent),
    buildLog: log,
    stateDirectory: () => state.take(signal),
    recordDirectory,
    setBuiltAt,
    addSnapshot,
  };
}

function commandError(command: string, result: CommandResult, logPath: string): ImageError {
  const end = result.signal ?? `exit code ${result.exitCode}`;
  if (result.diskFull) {
    return new ImageError(
      'disk-full',
      `"${command}" ended with ${end}: no space left on device; make room, see ${logPath}`,
    );
  }
  const said = result.lastLines.length === 0 ? '' : `, saying: ${result.lastLines.slice(-3).join(' / ')}`;
  return new ImageError('command-failed', `"${command}" ended with ${end}${said}; see ${logPath}`, {
    cause: result,
  });
}
