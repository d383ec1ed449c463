import { createHash } from 'node:crypto';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt } from '@nodepool-builder/image-builder/internal';
import { CloudError, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { awsCode } from './aws-error.ts';
import { type AwsRegion, AwsSession, type SessionOptions } from './aws-session.ts';
import type { AwsEntry } from './aws-settings.ts';
import { tryLaunch } from './instance/launch-instance.ts';
import type { InstanceSite } from './instance/launches.ts';

/** Id of a nonexistent image, so that a request for it always fails. */
const NO_IMAGE = 'ami-00000000000000000';
const NO_SNAPSHOT = 'snap-00000000000000000';
const NO_INSTANCE = 'i-00000000000000000';
const NO_TASK = 'import-ami-00000000000000000';

/** Name in requests that create nothing. */
const NAME = 'nodepool-builder-doctor';

/** An EBS block. */
const BLOCK = Buffer.alloc(524_288);

const REMEDY = 'add these actions to the policy of the user or the role';

type RequestOptions = Parameters<Parameters<AwsRegion['call']>[2]>[0];

/**
 * Requests by the action that they require. None changes anything, because each is a dry run or names something that
 * does not exist.
 */
type Trials = Readonly<Record<string, (options: RequestOptions) => Promise<unknown>>>;

interface Diagnosis {
  readonly entry: AwsEntry;
  readonly session: Omit<SessionOptions, 'name'>;
  readonly signal: AbortSignal;
}

/** Checks credentials, permissions, bucket and further regions for images, without retries. */
export async function* diagnoseImages({ entry, session, signal }: Diagnosis): AsyncGenerator<CheckResult> {
  const once = new AwsSession({ ...session, name: entry.name, attempts: 1 });
  try {
    const region = yield* checkAccess(entry, once, signal);
    if (region === undefined) return;
    const name = `of provider ${entry.name}`;
    yield await checkPermissions(
      `permissions for images ${name}`,
      region,
      imageTrials(entry, region),
      signal,
    );
    const { 'bucket-name': bucket, 'import-method': method } = entry;
    if (method !== 'ebs-direct' && bucket !== undefined) {
      yield await checkBucket(`bucket ${bucket} ${name}`, region, bucket, signal);
    }
    for (const other of entry['copy-regions'] ?? []) {
      const target = await once.open(other);
      yield await checkPermissions(`copies to ${other} ${name}`, target, copyTrials(region, target), signal);
    }
  } finally {
    once.close();
  }
}

/** Checks credentials, permissions and settings for instances, without retries. */
export async function* diagnoseInstances(
  { entry, session, signal }: Diagnosis,
  siteOf: (region: AwsRegion) => InstanceSite,
): AsyncGenerator<CheckResult> {
  const once = new AwsSession({ ...session, name: entry.name, attempts: 1 });
  try {
    const region = yield* checkAccess(entry, once, signal);
    if (region === undefined) return;
    const permissions = `permissions for instances of provider ${entry.name}`;
    yield await checkPermissions(permissions, region, instanceTrials(region), signal);
    const subject = `launches of provider ${entry.name}`;
    const tried = await attempt(subject, signal, () => tryLaunch(siteOf(region), signal));
    yield tried.problem ?? { subject, status: 'ok', message: tried.value };
  } finally {
    once.close();
  }
}

/** Checks that a bucket exists in the same region as the images. */
async function checkBucket(
  subject: string,
  region: AwsRegion,
  Bucket: string,
  signal: AbortSignal,
): Promise<CheckResult> {
  const remedy = `create it in ${region.name}, or set bucket-name to another bucket`;
  const result = await attempt(subject, signal, async () =>
    region
      .call('HeadBucket', signal, (options) => region.s3.headBucket({ Bucket }, options))
      .catch(unlessAbsent),
  );
  if (result.problem) return result.problem;
  if (result.value === undefined) return { subject, status: 'problem', message: 'does not exist', remedy };
  const { BucketRegion: place = region.name } = result.value;
  if (place === region.name) return { subject, status: 'ok', message: `exists in ${place}` };
  return { subject, status: 'problem', message: `is in ${place}, not in ${region.name}`, remedy };
}

/** @returns undefined if the remaining checks are impossible */
async function* checkAccess(
  entry: AwsEntry,
  session: AwsSession,
  signal: AbortSignal,
): AsyncGenerator<CheckResult, AwsRegion | undefined> {
  const subject = `credentials of provider ${entry.name}`;
  const opened = await attempt(subject, signal, async () => {
    const region = await session.open();
    await region.call('DescribeImages', signal, (options) =>
      region.ec2.describeImages({ Owners: ['self'], MaxResults: 5 }, options),
    );
    return region;
  });
  if (opened.problem) {
    yield opened.problem;
    return undefined;
  }
  const { value: region } = opened;
  const caller = await callerOf(region, session.options.endpoint, signal);
  const message = `EC2 accepts them in ${region.name}${caller === undefined ? '' : ` as ${caller}`}`;
  yield { subject, status: 'ok', message };
  return region;
}

/**
 * Returns the AWS name of the credentials' owner. Undefined if the service for it cannot be reached, as in a private
 * cloud.
 */
async function callerOf(
  region: AwsRegion,
  endpoint: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { STS } = await import('@aws-sdk/client-sts');
  const { credentials } = region.ec2.config;
  const sts = new STS({ region: region.name, credentials, maxAttempts: 1, ...(endpoint && { endpoint }) });
  try {
    return (await sts.getCallerIdentity({}, { abortSignal: signal })).Arn;
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    sts.destroy();
  }
}

/** Sends requests that change nothing. AWS may reject one for another reason before it checks the permission. */
async function checkPermissions(
  subject: string,
  region: AwsRegion,
  trials: Trials,
  signal: AbortSignal,
): Promise<CheckResult> {
  const missing: string[] = [];
  let granted = 0;
  const checked = await attempt(subject, signal, async () => {
    for (const [action, send] of Object.entries(trials)) {
      try {
        await region.call(action, signal, send);
        granted++;
      } catch (error) {
        signal.throwIfAborted();
        if (awsCode(error) === 'DryRunOperation') granted++;
        else if (!(error instanceof CloudError) || error.retriable || error.code === 'auth-failed')
          throw error;
        else if (error.code === 'forbidden') missing.push(action);
      }
    }
  });
  if (checked.problem) return checked.problem;
  if (missing.length > 0) {
    return { subject, status: 'problem', message: `lack ${missing.join(', ')}`, remedy: REMEDY };
  }
  const all = Object.keys(trials).length;
  const rest = granted < all ? `; AWS checks the other ${all - granted} only when they are used` : '';
  return { subject, status: 'ok', message: `AWS grants ${granted} of ${all}, and rejects none${rest}` };
}

function imageTrials(entry: AwsEntry, { ec2, ebs }: AwsRegion): Trials {
  const { 'import-method': method, 'share-accounts': accounts = [], 'bucket-name': bucket } = entry;
  const common: Trials = {
    'ec2:DescribeSnapshots': (options) => ec2.describeSnapshots({ DryRun: true }, options),
    'ec2:CreateTags': (options) =>
      ec2.createTags({ DryRun: true, Resources: [NO_SNAPSHOT], Tags: [{ Key: NAME, Value: '' }] }, options),
    'ec2:DeregisterImage': (options) => ec2.deregisterImage({ DryRun: true, ImageId: NO_IMAGE }, options),
    'ec2:DeleteSnapshot': (options) => ec2.deleteSnapshot({ DryRun: true, SnapshotId: NO_SNAPSHOT }, options),
    ...(accounts.length > 0 && {
      'ec2:ModifyImageAttribute': (options: RequestOptions) =>
        ec2.modifyImageAttribute(
          { DryRun: true, ImageId: NO_IMAGE, LaunchPermission: { Add: [{ UserId: '000000000000' }] } },
          options,
        ),
    }),
  };
  const register: Trials = {
    'ec2:RegisterImage': (options) =>
      ec2.registerImage(
        {
          DryRun: true,
          Name: NAME,
          RootDeviceName: '/dev/sda1',
          BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { SnapshotId: NO_SNAPSHOT } }],
        },
        options,
      ),
  };
  const container = { Format: 'raw', UserBucket: { S3Bucket: bucket, S3Key: NAME } };
  // A cleanup lists both kinds, because the import method may have changed.
  const tasks: Trials = {
    'ec2:DescribeImportSnapshotTasks': (options) =>
      ec2.describeImportSnapshotTasks({ DryRun: true }, options),
    'ec2:DescribeImportImageTasks': (options) => ec2.describeImportImageTasks({ DryRun: true }, options),
    'ec2:CancelImportTask': (options) =>
      ec2.cancelImportTask({ DryRun: true, ImportTaskId: NO_TASK }, options),
  };
  switch (method) {
    case 'ebs-direct':
      return {
        ...common,
        ...register,
        'ebs:StartSnapshot': (options) =>
          ebs.startSnapshot({ VolumeSize: 1, ParentSnapshotId: NO_SNAPSHOT }, options),
        'ebs:PutSnapshotBlock': (options) =>
          ebs.putSnapshotBlock(
            {
              SnapshotId: NO_SNAPSHOT,
              BlockIndex: 0,
              BlockData: BLOCK,
              DataLength: BLOCK.length,
              Checksum: createHash('sha256').update(BLOCK).digest('base64'),
              ChecksumAlgorithm: 'SHA256',
            },
            options,
          ),
        'ebs:CompleteSnapshot': (options) =>
          ebs.completeSnapshot({ SnapshotId: NO_SNAPSHOT, ChangedBlocksCount: 0 }, options),
      };
    case 'snapshot':
      return {
        ...common,
        ...register,
        'ec2:ImportSnapshot': (options) =>
          ec2.importSnapshot({ DryRun: true, DiskContainer: container }, options),
        ...tasks,
      };
    case 'image':
      return {
        ...common,
        'ec2:ImportImage': (options) =>
          ec2.importImage({ DryRun: true, DiskContainers: [container] }, options),
        ...tasks,
      };
  }
}

function copyTrials({ name }: AwsRegion, { ec2 }: AwsRegion): Trials {
  return {
    'ec2:DescribeImages': (options) => ec2.describeImages({ DryRun: true, Owners: ['self'] }, options),
    'ec2:CopyImage': (options) =>
      ec2.copyImage({ DryRun: true, Name: NAME, SourceImageId: NO_IMAGE, SourceRegion: name }, options),
  };
}

function instanceTrials({ ec2, ebs }: AwsRegion): Trials {
  const InstanceIds = [NO_INSTANCE];
  const InstanceId = NO_INSTANCE;
  const PublicKeyMaterial = Buffer.from(
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFnHZBJyMWbIEBXFHYJFxBsbTRQOtVpTyeJ6MRXjZtXf',
  );
  return {
    'ec2:DescribeInstances': (options) => ec2.describeInstances({ DryRun: true }, options),
    'ec2:DescribeInstanceTypes': (options) => ec2.describeInstanceTypes({ DryRun: true }, options),
    'ec2:DescribeKeyPairs': (options) => ec2.describeKeyPairs({ DryRun: true }, options),
    'ec2:ImportKeyPair': (options) =>
      ec2.importKeyPair({ DryRun: true, KeyName: NAME, PublicKeyMaterial }, options),
    'ec2:DeleteKeyPair': (options) => ec2.deleteKeyPair({ DryRun: true, KeyName: NAME }, options),
    'ec2:StopInstances': (options) => ec2.stopInstances({ DryRun: true, InstanceIds }, options),
    'ec2:TerminateInstances': (options) => ec2.terminateInstances({ DryRun: true, InstanceIds }, options),
    'ec2:GetConsoleOutput': (options) => ec2.getConsoleOutput({ DryRun: true, InstanceId }, options),
    'ec2:GetConsoleScreenshot': (options) => ec2.getConsoleScreenshot({ DryRun: true, InstanceId }, options),
    'ec2:GetPasswordData': (options) => ec2.getPasswordData({ DryRun: true, InstanceId }, options),
    'ec2:CreateImage': (options) => ec2.createImage({ DryRun: true, InstanceId, Name: NAME }, options),
    'ec2:CreateTags': (options) =>
      ec2.createTags({ DryRun: true, Resources: InstanceIds, Tags: [{ Key: NAME, Value: '' }] }, options),
    'ec2:DeregisterImage': (options) => ec2.deregisterImage({ DryRun: true, ImageId: NO_IMAGE }, options),
    'ec2:DeleteSnapshot': (options) => ec2.deleteSnapshot({ DryRun: true, SnapshotId: NO_SNAPSHOT }, options),
    'ebs:ListSnapshotBlocks': (options) => ebs.listSnapshotBlocks({ SnapshotId: NO_SNAPSHOT }, options),
    'ebs:GetSnapshotBlock': (options) =>
      ebs.getSnapshotBlock({ SnapshotId: NO_SNAPSHOT, BlockIndex: 0, BlockToken: NAME }, options),
  };
}
