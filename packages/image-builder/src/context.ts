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
  /** Called with each line of output. */
  readonly onLine?: (line: string) => void;
}

/** Resources of a builder during one build. Its functions can be destructured. */
export interface BuildContext {
  readonly imageId: string;
  /** `diskimages[].name`. */
  readonly imageName: string;
  readonly diskimage: DiskImage;
  /** Formats to make, at least one. Each needs its {@link output}. */
  readonly formats: readonly ImageFormat[];
  /** Private working directory on the file system of `images-dir`. It is removed when the build ends. */
  readonly directory: string;
  /** Environment of commands. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Limit of the size of a converted disk, in bytes; undefined for the default of 256 GiB. */
  readonly largestDisk?: number | undefined;
  /** Aborts when the build must stop: at its time limit or when it is cancelled. */
  readonly signal: AbortSignal;
  /** Path for the image in this format. */
  readonly output: (format: ImageFormat) => string;
  /**
   * Runs a command in its own process group, with closed standard input and its output in the build's log. As root, the
   * commands of a build share a mount namespace: this process does not see their mounts. When the build must stop, the
   * group gets SIGTERM, and SIGKILL ten seconds later.
   *
   * @throws ImageError `command-not-found`, `command-failed`, `disk-full`, `build-timeout`, `build-aborted`
   */
  readonly run: (command: string, args?: readonly string[], options?: RunOptions) => Promise<void>;
  /** Writes a line to the build's log. */
  readonly log: (line: string) => void;
  /** The build's log: its path, its masking of secrets, and a `write` whose promise applies back-pressure. */
  readonly buildLog: Pick<BuildLog, 'path' | 'mask' | 'write'>;
  /** Reports progress: `done` of `total`, in any unit. */
  readonly progress: (done: number, total: number) => void;
  /**
   * Creates a private directory below `parent`, for temporary files on another file system. It is removed with the build,
   * including its mounts, even if this process dies.
   */
  readonly temporaryDirectory: (parent: string) => Promise<string>;
  /**
   * Waits for the directory of the image name, in which a failed build keeps data for the next attempt, such as partial
   * downloads. It is on the file system of `images-dir`. One build uses it at a time. It is removed when an image is
   * published, or when the repository is opened after a week without use.
   *
   * @throws the signal's reason
   */
  readonly stateDirectory: () => Promise<string>;
  /** Path of the directory for records that outlive a build, below the state of `images-dir`. Its user creates it. */
  readonly recordDirectory: (name: string) => string;
  /** Sets the creation time of an image that was made elsewhere. A time in the future counts as now, with a warning. */
  readonly setBuiltAt: (time: Date) => void;
  /**
   * Registers a provider that already has the image.
   *
   * @param settle called when the image is published or has failed; in the latter case it removes the snapshot
   */
  readonly addSnapshot: (snapshot: Snapshot, settle: Settle) => void;
}

/** Called at the end of a build, when its image is published or has failed. */
export type Settle = (isPublished: boolean) => Promise<void>;

/** Parts of a {@link BuildContext}. */
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

/** Creates the context of one build, whose commands `runLogged` runs. */
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
