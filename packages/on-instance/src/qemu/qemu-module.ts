import type { ObjectSchema, ProviderModule } from '@nodepool-builder/image-builder';
import { QemuInstanceProvider } from './qemu-instance-provider.ts';

const SETTINGS = {
  type: 'object',
  properties: {
    memory: {
      type: 'integer',
      minimum: 1,
      default: 1024,
      description: 'Memory of an instance, in MiB, unless its image asks for more (`min-ram`).',
    },
    cpus: { type: 'integer', minimum: 1, default: 2, description: 'Processors of an instance.' },
    accelerator: {
      enum: ['kvm', 'tcg'],
      description:
        'Accelerator of QEMU. Default: `kvm`, and `tcg`, which takes many times as long, if QEMU fails with it.',
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
          description: 'Path of its initial RAM disk.',
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

/** `type: qemu`: instances on this host. */
export const QEMU_MODULE: ProviderModule<typeof SETTINGS> = {
  type: 'qemu',
  description: 'runs instances on this host, for `on-instance`; it takes no images',
  settings: SETTINGS,
  implicit: true,
  bootsFiles: true,
  openInstances({ name, memory, cpus, accelerator, 'direct-boot': boot }, { directory }) {
    return new QemuInstanceProvider({
      name,
      directory,
      memory,
      cpus,
      ...(accelerator !== undefined && { accelerator }),
      ...(boot !== undefined && {
        directBoot: {
          kernel: boot.kernel,
          ...(boot.initrd !== undefined && { initrd: boot.initrd }),
          commandLine: boot['command-line'],
        },
      }),
    });
  },
};
