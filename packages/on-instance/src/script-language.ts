/** Directory of a running build below the home directory. */
export const WORK_DIRECTORY = '.nodepool-builder';

/** Scripts of a build for a machine, in one language. */
export interface ScriptLanguage {
  /** Directory on the machine for the scripts of `script-dir`. */
  readonly scriptDirectory: string;
  /** File name extension of scripts. */
  readonly extension: string;
  /** Command line that runs a script file below the home directory, with administrator rights if it needs them. */
  readonly command: (path: string, username: string, asAdministrator: boolean) => string;
  /** Runs as administrator before the steps: waits for the set-up of the machine and installs the uploaded scripts. */
  readonly prepare: string;
  readonly step: (run: string, environment: Readonly<Record<string, string>>) => string;
  /** Prints the installed packages. Absent where there is no package manager. */
  readonly listPackages?: () => Promise<string>;
  /** Removes, as administrator, data that must not be in an image. Exits with 0 on success. */
  readonly clean: (publicKey: string | undefined) => string;
  /** Powers the machine off, as administrator. */
  readonly powerOff: string;
  /** Generalises the system and powers it off. Absent where this does not exist. */
  readonly sysprep?: string;
}
