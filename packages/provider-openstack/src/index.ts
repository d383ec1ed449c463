export type { CloudSettings } from './cloud-settings.ts';
export type { InstanceSettings } from './instance/instance-cloud.ts';
export { OpenStackInstance } from './instance/openstack-instance.ts';
export {
  OpenStackInstanceProvider,
  type OpenStackInstanceProviderOptions,
} from './instance/openstack-instance-provider.ts';
export { OPENSTACK_ERRORS, OpenStackError, type OpenStackErrorCode } from './openstack-error.ts';
export { OPENSTACK_MODULE } from './openstack-module.ts';
export { type ImageImport, OpenStackProvider, type OpenStackProviderOptions } from './openstack-provider.ts';
export { loadCloudSettings } from './settings/load-cloud-settings.ts';
export type { NodepoolCredentials, SettingsPlace, SettingsRequest } from './settings/settings-request.ts';
export { CLOUD_TASKS, type CloudTask, type OnTask } from './task-timing.ts';
export type { StandstillLimits } from './upload/others-image.ts';
