export { S3_MODULE, S3_MODULE as default } from './s3-module.ts';
export { S3Provider, type S3ProviderOptions } from './s3-provider.ts';
export type { S3Entry } from './s3-settings.ts';
