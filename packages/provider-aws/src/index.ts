export { AWS_MODULE, AWS_MODULE as default } from './aws-module.ts';
export { AwsProvider, type AwsProviderOptions } from './aws-provider.ts';
export type { AwsEntry } from './aws-settings.ts';
export { AwsInstanceProvider, type AwsInstanceProviderOptions } from './instance/aws-instance-provider.ts';
