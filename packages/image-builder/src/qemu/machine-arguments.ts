/** The emulator of PCs. */
export const QEMU = 'qemu-system-x86_64';

/** Accelerator of a machine: the host's processor, or an interpreter that takes many times as long. */
export type Accelerator = 'kvm' | 'tcg';

/** Settings of {@link machineArguments}. */
export interface MachineSettings {
  /** In MiB. */
  readonly memory: number;
  readonly accelerator: Accelerator;
}

/** Arguments of QEMU that all machines share. */
export function machineArguments({ memory, accelerator }: MachineSettings): string[] {
  return ['-accel', accelerator, '-cpu', 'max', '-m', `${memory}`];
}

/** A value in QEMU's notation of options, where two commas stand for one. */
export function optionValue(value: string): string {
  return value.replaceAll(',', ',,');
}
