export { DirectoryProvider, type DirectoryProviderOptions } from './directory/directory-provider.ts';
export type { DirectoryManifest } from './directory/manifest.ts';
export type { CloudSettings } from './openstack/cloud-settings.ts';
export type { InstanceSettings } from './openstack/instance/instance-cloud.ts';
export type { OpenStackInstance } from './openstack/instance/openstack-instance.ts';
export {
  OpenStackInstanceProvider,
  type OpenStackInstanceProviderOptions,
} from './openstack/instance/openstack-instance-provider.ts';
export {
  OPENSTACK_ERRORS,
  OpenStackError,
  type OpenStackErrorCode,
} from './openstack/openstack-error.ts';
export {
  type ImageImport,
  OpenStackProvider,
  type OpenStackProviderOptions,
} from './openstack/openstack-provider.ts';
export { loadCloudSettings } from './openstack/settings/load-cloud-settings.ts';
export { cloudSettingsFiles } from './openstack/settings/search-path.ts';
export type {
  NodepoolCredentials,
  SettingsPlace,
  SettingsRequest,
} from './openstack/settings/settings-request.ts';
export { CLOUD_TASKS, type CloudTask, type OnTask } from './openstack/task-timing.ts';
export type { StandstillLimits } from './openstack/upload/others-image.ts';
export type { DirectBoot } from './qemu/instance-arguments.ts';
export type { QemuInstance } from './qemu/qemu-instance.ts';
export { QemuInstanceProvider, type QemuInstanceProviderOptions } from './qemu/qemu-instance-provider.ts';
export { IMAGE_PROVIDERS, type ProviderSettings } from './registry.ts';
