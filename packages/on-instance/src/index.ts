export { InstanceKeeper, type InstanceKeeperOptions } from './instance-keeper.ts';
export { InstanceRecords } from './instance-records.ts';
export { type InstanceDiskImage, OnInstanceBuilder } from './on-instance-builder.ts';
export type { DirectBoot } from './qemu/instance-arguments.ts';
export { QemuInstance } from './qemu/qemu-instance.ts';
export { QemuInstanceProvider, type QemuInstanceProviderOptions } from './qemu/qemu-instance-provider.ts';
export { QEMU_MODULE } from './qemu/qemu-module.ts';
export type { InstanceStep, OnInstance, WinrmSettings } from './settings.ts';
export { parseFingerprint } from './winrm/certificate-fingerprint.ts';
