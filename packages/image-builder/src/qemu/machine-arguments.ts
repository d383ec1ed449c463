/** The emulator of PCs. */
export const QEMU = 'qemu-system-x86_64';

/** What runs a machine's code: the host's processor, or an interpreter that takes many times as long. */
export type Accelerator = 'kvm' | 'tcg';

/** Settings of {@link machineArguments}. */
export interface MachineSettings {
  /** In MiB. */
  readonly memory: number;
  readonly accelerator: Accelerator;
}

/** QEMU's arguments for what all machines have in common. */
export function machineArguments({ memory, accelerator }: MachineSettings): string[] {
  return ['-accel', accelerator, '-cpu', 'max', '-m', `${memory}`];
}

/** A value in QEMU's notation of options, where two commas stand for one. */
export function optionValue(value: string): string {
  return value.replaceAll(',', ',,');
}
