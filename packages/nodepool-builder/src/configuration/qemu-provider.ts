import type { QemuProviderConfiguration } from './configuration.ts';
import type { ProviderSource } from './source.ts';

/**
 * One entry of `providers` of type `qemu`.
 *
 * @param absolute makes a path absolute
 */
export function toQemuProvider(
  { name, memory, cpus, accelerator, 'direct-boot': boot }: ProviderSource,
  absolute: (path: string) => string,
): QemuProviderConfiguration {
  return {
    name,
    ...(memory !== undefined && { memory }),
    ...(cpus !== undefined && { cpus }),
    ...(accelerator !== undefined && { accelerator }),
    ...(boot !== undefined && {
      directBoot: {
        kernel: absolute(boot.kernel),
        ...(boot.initrd !== undefined && { initrd: absolute(boot.initrd) }),
        commandLine: boot['command-line'],
      },
    }),
  };
}
