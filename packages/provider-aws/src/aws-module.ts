import type { ProviderModule } from '@nodepool-builder/image-builder';
import { scalarText } from '@nodepool-builder/image-builder/internal';
import { AwsProvider } from './aws-provider.ts';
import type { SessionOptions } from './aws-session.ts';
import { AWS_SETTINGS, type AwsEntry } from './aws-settings.ts';
import { AWS_CLOUD_IMAGES } from './cloud-image-keys.ts';
import { AwsInstanceProvider } from './instance/aws-instance-provider.ts';

/** `type: aws`: AMIs and instances in EC2. */
export const AWS_MODULE: ProviderModule<typeof AWS_SETTINGS, undefined> = {
  type: 'aws',
  settings: AWS_SETTINGS,
  *check(entry) {
    const { 'import-method': method, 'bucket-name': bucket, 'imds-support': imds } = entry;
    if (method !== 'ebs-direct' && bucket === undefined) {
      yield {
        pointer: '',
        reason: `lacks the key "bucket-name", which import-method: ${method} needs`,
        remedy: 'set it to an S3 bucket in the same region',
      };
    }
    if (method === 'image' && imds === 'v2.0') {
      yield {
        pointer: '/imds-support',
        reason: 'cannot be set with import-method: image, which creates AMIs without it',
        remedy: 'use import-method: snapshot or ebs-direct',
      };
    }
  },
  prepare: async () => ({ prepared: undefined, imageType: 'raw' }),
  images: {
    open: (entry, services) =>
      new AwsProvider({ entry, ...services, session: { ...sessionOf(entry), onTask: services.onTask } }),
    cloudImages: AWS_CLOUD_IMAGES,
  },
  instances: {
    open(entry, { logger, owner, scope, directory }) {
      return new AwsInstanceProvider({ entry, owner, scope, logger, directory, session: sessionOf(entry) });
    },
    reportsPasswords: true,
  },
};

function sessionOf(entry: AwsEntry): Omit<SessionOptions, 'name'> {
  return {
    region: scalarText(entry['region-name']),
    profile: entry['profile-name'],
    credentialsFile: entry['shared-credentials-file'],
    endpoint: entry.endpoint,
    s3Endpoint: entry['s3-endpoint'],
    concurrency: entry['upload-concurrency'] + 8,
  };
}
