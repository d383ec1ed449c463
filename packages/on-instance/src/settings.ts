/** How an image is made on a running machine: the block `on-instance` of a disk image. Times are in seconds. */
export interface OnInstance {
  /** Name of the provider of instances on which the machine runs. */
  readonly provider: string;
  /** What it boots: a path where the provider works with files, else a name or an id in the provider. */
  readonly baseImage: string;
  /** The least memory that the machine may have, in MiB. Default: as the provider has it. */
  readonly minRam?: number;
  /** A part of the name of the flavors to choose from, where the provider has flavors. */
  readonly nameFilter?: string;
  /** Who logs in. */
  readonly username: string;
  /** Path of a private key that the base image lets in. Default: a key pair made for each build. */
  readonly privateKeyFile?: string;
  readonly connection: 'ssh' | 'winrm';
  /** For `winrm`. */
  readonly winrm?: WinrmSettings;
  /** What reads the commands of the steps. */
  readonly shell: 'posix' | 'powershell';
  /** What is run, one after the other; each has to end with 0. */
  readonly steps: readonly InstanceStep[];
  /** Generalise Windows with sysprep once the steps are done, and wait for the shut-down that follows. */
  readonly sysprep: boolean;
  /** From the launch until somebody can log in. Default of the configuration: 600. */
  readonly bootTimeout: number;
  /** From the request to power off until it is off. Default of the configuration: 300. */
  readonly stopTimeout: number;
  /** How long the machine of a failed build is kept, so that one can look what went wrong. Without it: not at all. */
  readonly keepOnFailure?: number;
  /** What becomes of a build under way when the daemon is started again, if its job comes again. */
  readonly afterRestart: 'destroy' | 'resume';
}

/** One step: a command, or a script of the script directory. */
export interface InstanceStep {
  /** What messages call it. Default: what is run. */
  readonly name?: string;
  /** Read by the shell, in the directory that the scripts were put into. */
  readonly run: string;
}

/** How Windows Remote Management is reached, always by HTTPS. */
export interface WinrmSettings {
  /** Default 5986. */
  readonly port: number;
  readonly passwordFile: string;
  /** Path of certificates of authorities, PEM. */
  readonly caFile?: string;
  /**
   * Fingerprint of the certificate, as {@link fingerprintOf} writes it. Without it and without {@link caFile}, the console
   * has to announce the certificate.
   */
  readonly fingerprint?: string;
}
