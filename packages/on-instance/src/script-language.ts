/** Below the home directory: what a build has there while it runs. */
export const WORK_DIRECTORY = '.nodepool-builder';

/** A script for a machine. */
export interface MachineScript {
  readonly text: string;
  /** Whether who logs in has to become the administrator for it. */
  readonly asAdministrator: boolean;
}

/** The scripts that a build runs on a machine, in one language. */
export interface ScriptLanguage {
  /** Where the scripts of `script-dir` come to lie on the machine. */
  readonly scriptDirectory: string;
  /** What names of scripts end with. */
  readonly extension: string;
  /** The command line that runs the script file at a path below the home directory. */
  readonly command: (path: string, script: MachineScript, username: string) => string;
  /** What comes before the steps: waits until the machine has set itself up, and puts the uploaded scripts in place. */
  readonly prepare: MachineScript;
  readonly step: (run: string, environment: Readonly<Record<string, string>>) => MachineScript;
  /** Takes out what must not be in an image. It ends with 0 if that is done. */
  readonly clean: (publicKey: string | undefined) => MachineScript;
  /** Ends with the machine. */
  readonly powerOff: MachineScript;
  /** Generalises the system, and ends with the machine. Absent where there is nothing of the kind. */
  readonly sysprep?: MachineScript;
}
