import type { ImageAttester, Material } from './attestation.ts';
import type { BuildLog } from './build/build-log.ts';
import type { SourceRepository } from './build/source-repository.ts';
import type { DiskImage } from './disk-image.ts';
import type { ImageFormat } from './formats.ts';
import type { Environment } from './process/inherited-environment.ts';
import type { ImageRepository, Settle } from './repository.ts';
import type { Logger, OperationOptions, Snapshot } from './types.ts';

/** Parameters of a build. */
export interface BuildJob extends OperationOptions {
  readonly imageId: string;
  /** Repository that receives the image. */
  readonly repository: ImageRepository;
  readonly logger?: Logger;
  /** Directory of `<image-id>.log`; default `.nodepool-builder/logs` in the repository's directory. */
  readonly logDirectory?: string;
  /** Number of logs to keep for the image name, including this one. Default 7. */
  readonly logRetention?: number;
  /** Name of the log in errors, such as a command that prints it on any host. Default: its path. */
  readonly logName?: string;
  /** Called with each line of the build's log. */
  readonly onLine?: (line: string) => void;
  /** Maximum virtual size of a converted disk, in bytes. Default 256 GiB. */
  readonly maxDiskSize?: number;
  /**
   * Maximum size of the directory that `BuildContext.cacheDirectory()` returns, in bytes. Default 0, which disables it.
   */
  readonly cacheLimit?: number;
  /** Environment of commands. Default: the variables of this process that contain no secrets. */
  readonly environment?: Environment;
  /** Proves the origin of the image. If it fails, the build fails. Default: none. */
  readonly attester?: ImageAttester;
}

/** Settings of one command, see {@link BuildContext.run}. */
export interface RunOptions {
  /** Added to {@link BuildContext.environment}. Variables for temporary files still name directories of the build. */
  readonly env?: Readonly<Record<string, string>>;
  /** Working directory. Default {@link BuildContext.directory}. */
  readonly cwd?: string;
  /** Called with each line of output. */
  readonly onLine?: (line: string) => void;
}

/** Resources of a builder during one build. Its functions can be destructured. */
export interface BuildContext {
  readonly imageId: string;
  readonly diskimage: DiskImage;
  /** Formats to make, at least one. Each must be written to its {@link outputPath}. */
  readonly formats: readonly ImageFormat[];
  /** Private working directory on the file system of `images-dir`. It is removed when the build ends. */
  readonly directory: string;
  /** Environment of commands. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborts when the build must stop, at its time limit or when it is cancelled. */
  readonly signal: AbortSignal;
  /** Returns the path for the image in this format. */
  readonly outputPath: (format: ImageFormat) => string;
  /**
   * Runs a command in its own process group, with closed standard input and its output in the build's log. As root, the
   * commands of a build share a mount namespace, so this process does not see their mounts. When the build must stop,
   * the group gets SIGTERM, and SIGKILL ten seconds later.
   *
   * @throws ImageError `command-not-found`, `command-failed`, `disk-full`, `build-timeout`, `build-aborted`
   */
  readonly run: (command: string, args?: readonly string[], options?: RunOptions) => Promise<void>;
  /** Writes a line to the build's log. */
  readonly log: (line: string) => void;
  /** Reports progress: `done` of `total`, in any unit, and the name of the current phase. */
  readonly progress: (done: number, total: number, phase?: string) => void;
  /**
   * Waits for the directory of the disk image, in which a failed build keeps data for the next attempt, such as partial
   * downloads. It is on the file system of `images-dir`. One build uses it at a time. It is removed when an image is
   * published, or when the repository is opened after a week without use.
   *
   * @throws the signal's reason
   */
  readonly stateDirectory: () => Promise<string>;
  /**
   * Reports something that the build uses: a repository, a base image, a script. Its address must not contain
   * credentials. A user and a password before the host are removed. A material that was reported before is ignored.
   */
  readonly addMaterial: (material: Material) => void;
}

/** A build context with members that only the builders of this repository use. Every build has one. */
export interface FullBuildContext extends BuildContext {
  /** Maximum virtual size of a converted disk, in bytes. Undefined means the default of 256 GiB. */
  readonly maxDiskSize?: number | undefined;
  /** The build's log: its path, its masking of secrets, and a `write` whose promise applies back-pressure. */
  readonly buildLog: Pick<BuildLog, 'path' | 'name' | 'mask' | 'write'>;
  /**
   * Waits until this many more bytes fit into `path`, which is on the file system of `images-dir`, in addition to those
   * that other operations will still write, and reserves them.
   *
   * @throws ImageError `disk-full` if they cannot fit
   * @throws the signal's reason
   */
  readonly reserveSpace: (path: string, bytes: number) => Promise<void>;
  /**
   * Takes the directory for downloads of the disk image, which outlives builds and restarts, and is not part of the
   * image. When the build ends, the least recently used files above the limit are removed. While another build uses it,
   * this is an empty directory that is removed with the build. Undefined without {@link BuildJob.cacheLimit}.
   */
  readonly cacheDirectory: () => Promise<string | undefined>;
  /**
   * Returns the path of the directory for records that outlive a build, in the state directory of `images-dir`. Its
   * user creates it.
   */
  readonly recordDirectory: (name: string) => string;
  /**
   * Path for a list of the packages in the image: lines of text, or JSON of CycloneDX or SPDX. Undefined if no attester
   * reads it.
   */
  readonly packageList: string | undefined;
  /** True if materials are attested. If not, a builder need not compute digests. */
  readonly wantsMaterials: boolean;
  /**
   * Finds the git repository that contains a path, for a material. Undefined if there is none, if git is not installed,
   * or without {@link BuildJob.attester}.
   */
  readonly findRepository: (path: string) => Promise<SourceRepository | undefined>;
  /** Sets the creation time of an image that was made elsewhere. A future time counts as now, with a warning. */
  readonly setBuiltAt: (time: Date) => void;
  /**
   * Registers a provider that already has the image.
   *
   * @param settle called when the image is published or has failed; in the latter case it removes the snapshot
   */
  readonly addSnapshot: (snapshot: Snapshot, settle: Settle) => void;
}
