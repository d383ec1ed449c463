import { availableParallelism } from 'node:os';
import type { Accelerator, LaunchRequest, ObjectSchema, SettingsOf } from '@nodepool-builder/image-builder';
import { machineArguments, optionValue } from '@nodepool-builder/image-builder/internal';
import { CONFIG_DRIVE_LABEL, INSTANCE_FILES } from './instance-directory.ts';

/** Default memory of an instance, in MiB. */
const MEMORY = 1024;

/** Maximum number of an instance's processors. */
const MAX_PROCESSORS = 8;

export const QEMU_SETTINGS = {
  type: 'object',
  description: 'runs instances on this host, for `on-instance`; it stores no images',
  properties: {
    accelerator: {
      enum: ['kvm', 'tcg'],
      description:
        'QEMU accelerator. Default: `kvm`, and `tcg`, which takes many times as long, if QEMU fails with it, or if ' +
        'a `direct-boot` kernel with `console=ttyS0` writes nothing in the first minute.',
    },
    'direct-boot': {
      type: 'object',
      required: ['kernel', 'command-line'],
      additionalProperties: false,
      description: 'Kernel to boot, for base images without a boot loader. Default: the BIOS boots.',
      properties: {
        kernel: { type: 'string', format: 'path', minLength: 1, description: 'Path of the kernel.' },
        initrd: {
          type: 'string',
          format: 'path',
          minLength: 1,
          description: 'Path of the initial RAM disk.',
        },
        'command-line': {
          type: 'string',
          minLength: 1,
          description: 'Arguments of the kernel: `root=/dev/vda console=ttyS0`.',
        },
      },
    },
  },
} as const satisfies ObjectSchema;

/** Settings of instances, see docs/configuration.md. */
export type QemuSettings = SettingsOf<typeof QEMU_SETTINGS>;

/** Returns QEMU's arguments for an instance, which is named after its build. */
export function instanceArguments(
  { 'direct-boot': directBoot }: QemuSettings,
  { buildId, port, minRam = MEMORY }: Pick<LaunchRequest, 'buildId' | 'port' | 'minRam'>,
  accelerator: Accelerator,
): string[] {
  const { disk, configDrive, console, monitor } = INSTANCE_FILES;
  return [
    ['-name', optionValue(buildId)],
    machineArguments(minRam, accelerator),
    ['-smp', `${Math.min(availableParallelism(), MAX_PROCESSORS)}`],
    // After a power-off QEMU waits, so that a power-off differs from a crash even after a restart of the builder.
    ['-no-shutdown'],
    // Does not flush, because a disk that was not captured is useless after a crash of the host.
    ['-drive', `file=${disk},format=qcow2,if=virtio,cache=unsafe,discard=unmap`],
    ['-drive', `driver=vvfat,dir=${configDrive},label=${CONFIG_DRIVE_LABEL},if=virtio,read-only=on`],
    // QEMU itself chooses and keeps a free port, so that no other process can take it in between.
    ['-netdev', `user,id=net0,hostfwd=tcp:127.0.0.1:0-:${port}`],
    ['-device', 'virtio-net-pci,netdev=net0,romfile='],
    ['-device', 'virtio-rng-pci'],
    ['-display', 'none'],
    ['-serial', `file:${console}`],
    ['-monitor', 'none'],
    ['-qmp', `unix:${monitor},server=on,wait=off`],
    directBoot === undefined ? [] : ['-kernel', directBoot.kernel, '-append', directBoot['command-line']],
    directBoot?.initrd === undefined ? [] : ['-initrd', directBoot.initrd],
  ].flat();
}

/** Parses the forwarded loopback port in the monitor's reply to `info usernet`. */
export function forwardedPort(usernet: string): number | undefined {
  const port = /^ *TCP\[HOST_FORWARD\] +\d+ +127\.0\.0\.1 +(\d+) /m.exec(usernet)?.[1];
  return port === undefined ? undefined : Number(port);
}
