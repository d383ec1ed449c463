export { InstanceReaper } from './instance-reaper.ts';
export { InstanceRecords, recordedProviders } from './instance-records.ts';
export { OnInstanceBuilder } from './on-instance-builder.ts';
export { ON_INSTANCE_MODULE } from './on-instance-module.ts';
export type { OnInstance } from './on-instance-settings.ts';
export { QemuInstance } from './qemu/qemu-instance.ts';
export {
  QEMU_MODULE,
  QemuInstanceProvider,
  type QemuInstanceProviderOptions,
} from './qemu/qemu-instance-provider.ts';
