/** Directory of a running build below the home directory. */
export const WORK_DIRECTORY = '.nodepool-builder';

/** A script for a machine. */
export interface MachineScript {
  readonly text: string;
  /** True if the script needs administrator rights. */
  readonly asAdministrator: boolean;
}

/** Scripts of a build for a machine, in one language. */
export interface ScriptLanguage {
  /** Directory on the machine for the scripts of `script-dir`. */
  readonly scriptDirectory: string;
  /** File name extension of scripts. */
  readonly extension: string;
  /** Command line that runs a script file below the home directory. */
  readonly command: (path: string, script: MachineScript, username: string) => string;
  /** Runs before the steps: waits for the set-up of the machine and installs the uploaded scripts. */
  readonly prepare: MachineScript;
  readonly step: (run: string, environment: Readonly<Record<string, string>>) => MachineScript;
  /** Prints the installed packages. Absent where there is no package manager. */
  readonly listPackages?: () => Promise<MachineScript>;
  /** Removes data that must not be in an image. Exits with 0 on success. */
  readonly clean: (publicKey: string | undefined) => MachineScript;
  /** Powers the machine off. */
  readonly powerOff: MachineScript;
  /** Generalises the system and powers it off. Absent where this does not exist. */
  readonly sysprep?: MachineScript;
}
