import { createHash } from 'node:crypto';
import type { EBS } from '@aws-sdk/client-ebs';
import type { EC2 } from '@aws-sdk/client-ec2';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, runCheck } from '@nodepool-builder/image-builder/internal';
import { CloudError, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { awsCode } from './aws-error.ts';
import { type AwsRegion, AwsSession, type SessionOptions } from './aws-session.ts';
import type { AwsEntry } from './aws-settings.ts';
import { tryLaunch } from './instance/launch-instance.ts';
import type { InstanceSite } from './instance/launches.ts';
import type { SdkRequests } from './sdk-requests.ts';

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

/** Inputs of requests by the action `SERVICE:OPERATION` that a request requires. */
type TrialsOf<Service extends string, Requests> = {
  readonly [Name in keyof Requests & string as `${Service}:${Capitalize<Name>}`]?: Parameters<
    Extract<Requests[Name], (input: never) => unknown>
  >[0];
};

/**
 * Requests by the action that they require. None changes anything, because each names something that does not exist,
 * and those to EC2 are also dry runs.
 */
type Trials = TrialsOf<'ec2', SdkRequests<EC2>> & TrialsOf<'ebs', SdkRequests<EBS>>;

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
    yield await checkPermissions(`permissions for images ${name}`, region, imageTrials(entry), signal);
    const { 'bucket-name': bucket, 'import-method': method } = entry;
    if (method !== 'ebs-direct' && bucket !== undefined) {
      yield await checkBucket(`bucket ${bucket} ${name}`, region, bucket, signal);
    }
    for (const other of entry['copy-regions'] ?? []) {
      const target = await once.open(other);
      yield await checkPermissions(`copies to ${other} ${name}`, target, copyTrials(region), signal);
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
    yield await checkPermissions(permissions, region, INSTANCE_TRIALS, signal);
    const launches = `launches of provider ${entry.name}`;
    yield await runCheck(launches, signal, () => tryLaunch(siteOf(region), signal));
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
  return await runCheck(subject, signal, async () => {
    const found = await region.s3(signal).headBucket({ Bucket }).catch(unlessAbsent);
    if (found === undefined) return { status: 'problem', message: 'does not exist', remedy };
    const { BucketRegion: place = region.name } = found;
    if (place === region.name) return `exists in ${place}`;
    return { status: 'problem', message: `is in ${place}, not in ${region.name}`, remedy };
  });
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
    await region.ec2(signal).describeImages({ Owners: ['self'], MaxResults: 5 });
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
  const { credentials } = region.clients.ec2.config;
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
    for (const [action, input] of Object.entries(trials) as [string, object][]) {
      try {
        await region.call(action, signal, (options) => sendTrial(region, action, input, options));
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

async function sendTrial(
  { clients }: AwsRegion,
  action: string,
  input: object,
  options: object,
): Promise<unknown> {
  const [service, operation = ''] = action.split(':');
  const client: object = service === 'ec2' ? clients.ec2 : clients.ebs;
  const methods = client as Readonly<Record<string, (input: object, options: object) => Promise<unknown>>>;
  const method = `${operation.charAt(0).toLowerCase()}${operation.slice(1)}`;
  return await methods[method]?.({ ...input, ...(service === 'ec2' && { DryRun: true }) }, options);
}

const TAGS = [{ Key: NAME, Value: '' }];

const REMOVAL: Trials = {
  'ec2:DeregisterImage': { ImageId: NO_IMAGE },
  'ec2:DeleteSnapshot': { SnapshotId: NO_SNAPSHOT },
};

const REGISTRATION: Trials = {
  'ec2:RegisterImage': {
    Name: NAME,
    RootDeviceName: '/dev/sda1',
    BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { SnapshotId: NO_SNAPSHOT } }],
  },
};

/** A cleanup lists both kinds of tasks, because the import method may have changed. */
const IMPORT_TASKS: Trials = {
  'ec2:DescribeImportSnapshotTasks': {},
  'ec2:DescribeImportImageTasks': {},
  'ec2:CancelImportTask': { ImportTaskId: NO_TASK },
};

const BLOCKS: Trials = {
  'ebs:StartSnapshot': { VolumeSize: 1, ParentSnapshotId: NO_SNAPSHOT },
  'ebs:PutSnapshotBlock': {
    SnapshotId: NO_SNAPSHOT,
    BlockIndex: 0,
    BlockData: BLOCK,
    DataLength: BLOCK.length,
    Checksum: createHash('sha256').update(BLOCK).digest('base64'),
    ChecksumAlgorithm: 'SHA256',
  },
  'ebs:CompleteSnapshot': { SnapshotId: NO_SNAPSHOT, ChangedBlocksCount: 0 },
};

function imageTrials(entry: AwsEntry): Trials {
  const { 'import-method': method, 'share-accounts': accounts = [], 'bucket-name': bucket } = entry;
  const LaunchPermission = { Add: [{ UserId: '000000000000' }] };
  const common: Trials = {
    'ec2:DescribeSnapshots': {},
    'ec2:CreateTags': { Resources: [NO_SNAPSHOT], Tags: TAGS },
    ...REMOVAL,
    ...(accounts.length > 0 && { 'ec2:ModifyImageAttribute': { ImageId: NO_IMAGE, LaunchPermission } }),
  };
  const container = { Format: 'raw', UserBucket: { S3Bucket: bucket, S3Key: NAME } };
  switch (method) {
    case 'ebs-direct':
      return { ...common, ...REGISTRATION, ...BLOCKS };
    case 'snapshot':
      return {
        ...common,
        ...REGISTRATION,
        'ec2:ImportSnapshot': { DiskContainer: container },
        ...IMPORT_TASKS,
      };
    case 'image':
      return { ...common, 'ec2:ImportImage': { DiskContainers: [container] }, ...IMPORT_TASKS };
  }
}

function copyTrials({ name }: AwsRegion): Trials {
  return {
    'ec2:DescribeImages': { Owners: ['self'] },
    'ec2:CopyImage': { Name: NAME, SourceImageId: NO_IMAGE, SourceRegion: name },
  };
}

const INSTANCE = { InstanceId: NO_INSTANCE };
const INSTANCES = { InstanceIds: [NO_INSTANCE] };

const INSTANCE_TRIALS: Trials = {
  'ec2:DescribeInstances': {},
  'ec2:DescribeInstanceTypes': {},
  'ec2:DescribeKeyPairs': {},
  'ec2:ImportKeyPair': {
    KeyName: NAME,
    PublicKeyMaterial: Buffer.from(
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFnHZBJyMWbIEBXFHYJFxBsbTRQOtVpTyeJ6MRXjZtXf',
    ),
  },
  'ec2:DeleteKeyPair': { KeyName: NAME },
  'ec2:StopInstances': INSTANCES,
  'ec2:TerminateInstances': INSTANCES,
  'ec2:GetConsoleOutput': INSTANCE,
  'ec2:GetConsoleScreenshot': INSTANCE,
  'ec2:GetPasswordData': INSTANCE,
  'ec2:CreateImage': { ...INSTANCE, Name: NAME },
  'ec2:CreateTags': { Resources: [NO_INSTANCE], Tags: TAGS },
  ...REMOVAL,
  'ebs:ListSnapshotBlocks': { SnapshotId: NO_SNAPSHOT },
  'ebs:GetSnapshotBlock': { SnapshotId: NO_SNAPSHOT, BlockIndex: 0, BlockToken: NAME },
};
