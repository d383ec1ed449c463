/** The PC emulator. */
export const QEMU = 'qemu-system-x86_64';

/** Accelerator of a machine: the host's CPU, or an interpreter that takes many times as long. */
export type Accelerator = 'kvm' | 'tcg';

/** Settings of {@link machineArguments}. */
export interface MachineSettings {
  /** Memory in MiB. */
  readonly memory: number;
  readonly accelerator: Accelerator;
}

/** Arguments of QEMU that all machines share. */
export function machineArguments({ memory, accelerator }: MachineSettings): string[] {
  return ['-accel', accelerator, '-cpu', 'max', '-m', `${memory}`];
}

/** Formats a value of a QEMU option, in which two commas stand for one. */
export function optionValue(value: string): string {
  return value.replaceAll(',', ',,');
}
