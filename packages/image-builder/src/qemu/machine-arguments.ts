/** The PC emulator. */
export const QEMU = 'qemu-system-x86_64';

/** Accelerator of a machine: the host's CPU, or an interpreter that takes many times as long. */
export type Accelerator = 'kvm' | 'tcg';

/** Arguments of QEMU that all machines share. @param memory in MiB */
export function machineArguments(memory: number, accelerator: Accelerator): string[] {
  return ['-accel', accelerator, '-cpu', 'max', '-m', `${memory}`];
}

/** Formats a value of a QEMU option, in which two commas stand for one. */
export function optionValue(value: string): string {
  return value.replaceAll(',', ',,');
}
