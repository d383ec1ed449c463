export type { CloudSettings } from './cloud-settings.ts';
export type { InstanceSettings } from './instance/instance-cloud.ts';
export {
  OpenStackInstanceProvider,
  type OpenStackInstanceProviderOptions,
} from './instance/openstack-instance-provider.ts';
export { OPENSTACK_MODULE } from './openstack-module.ts';
export { OpenStackProvider, type OpenStackProviderOptions } from './openstack-provider.ts';
export type { SettingsRequest } from './settings/choose-cloud.ts';
export type { NodepoolCredentials } from './settings/cloud-auth.ts';
export type { SettingsPlace } from './settings/cloud-files.ts';
export { loadCloudSettings } from './settings/load-cloud-settings.ts';
export type { StandstillLimits } from './upload/shared-upload.ts';
export type { ImageImport } from './upload/upload-method.ts';
