import type { InstanceAddress, Probe } from '@nodepool-builder/image-builder';

/** A file to put on a machine. */
export interface RemoteFile {
  /** Where, below the home directory of who is logged in, with `/` between the names. Directories are made. */
  readonly path: string;
  /** Absolute path of the file here, or what it holds. */
  readonly content: { readonly file: string } | { readonly text: string };
}

/** Settings of {@link RemoteShell.run}. */
export interface RemoteCommandOptions {
  readonly signal: AbortSignal;
  /** Called with each line of output as it comes. */
  readonly onLine: (line: string) => void | Promise<void>;
}

/** How a command ended on a machine. */
export interface RemoteResult {
  /** Absent if a signal ended it. */
  readonly exitCode?: number;
  /** `SIGTERM`, say. */
  readonly signal?: string;
}

/** The narrow port to who is logged in to a machine. */
export interface RemoteShell {
  /**
   * Runs a command line in the home directory, its input closed.
   *
   * @throws ImageError `instance-failed` if the connection is lost
   * @throws the signal's reason; what was begun may run on
   */
  run(commandLine: string, options: RemoteCommandOptions): Promise<RemoteResult>;
  /**
   * Puts files, for nobody but their owner to read, in the place of those that are there.
   *
   * @throws ImageError `instance-failed`, also if a file cannot be written; `directory-not-usable` if one cannot be
   *   read here
   */
  put(files: readonly RemoteFile[], signal: AbortSignal): Promise<void>;
  /** Whether nothing can be run any more. */
  readonly isClosed: boolean;
  close(): void;
}

/** What is known of who may log in, and of who is there. It changes as more becomes known. */
export interface Login {
  readonly port: number;
  /** Reads the fingerprints that a console log announces for this service; absent if the console does not matter. */
  readonly announcedKeys?: (consoleLog: string) => ReadonlySet<string>;
  /** Whether the service that one logs in to is there. */
  readonly probe: Probe;
  /**
   * @throws ImageError `host-key-changed` if another machine answers than before
   * @throws ImageError `login-refused` if one cannot log in, or not yet
   */
  connect(address: InstanceAddress, signal: AbortSignal): Promise<RemoteShell>;
  /** By what one knows the machine since the first login, and why that is trusted, for people. */
  describe(): string;
  /** A command line for people who want to log in. */
  hint(address: InstanceAddress): string;
}
