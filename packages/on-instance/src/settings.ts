/** The block `on-instance` of a disk image: how it is built on a running machine. Times are in seconds. */
export interface OnInstance {
  /** Name of the provider that runs the machine. */
  readonly provider: string;
  /** Base image: a path if the provider uses files, or else a name or id in the provider. */
  readonly baseImage: string;
  /** Minimum memory of the machine in MiB. Default: the provider's. */
  readonly minRam?: number;
  /** Part of the flavor's name, if the provider has flavors. */
  readonly nameFilter?: string;
  /** User for the login. */
  readonly username: string;
  /** Path of a private key that the base image accepts. Default: a key pair is generated for each build. */
  readonly privateKeyFile?: string;
  readonly connection: 'ssh' | 'winrm';
  /** For `winrm`. */
  readonly winrm?: WinrmSettings;
  /** Shell that interprets the steps. */
  readonly shell: 'posix' | 'powershell';
  /** Steps, run in order; each must exit with 0. */
  readonly steps: readonly InstanceStep[];
  /** Whether to generalise Windows with sysprep after the steps, which then shuts down. */
  readonly sysprep: boolean;
  /** Time limit from the launch to the login. Default of the configuration: 600. */
  readonly bootTimeout: number;
  /** Time limit for powering off. Default of the configuration: 300. */
  readonly stopTimeout: number;
  /** Time for which the machine of a failed build is kept for inspection. Default: it is not kept. */
  readonly keepOnFailure?: number;
  /** What happens to an interrupted build after a restart of the daemon, if its job is assigned again. */
  readonly afterRestart: 'destroy' | 'resume';
}

/** One step: a command, or a script of the script directory. */
export interface InstanceStep {
  /** Name in messages. Default: the command. */
  readonly name?: string;
  /** Command for the shell, in the directory of the scripts. */
  readonly run: string;
}

/** Settings of Windows Remote Management over HTTPS. */
export interface WinrmSettings {
  /** Default 5986. */
  readonly port: number;
  readonly passwordFile: string;
  /** Path of certificates of authorities, PEM. */
  readonly caFile?: string;
  /**
   * Fingerprint of the certificate, in the notation of {@link fingerprintOf}. Without it and {@link caFile}, the console
   * must announce the certificate.
   */
  readonly fingerprint?: string;
}
