import type {
  DescribeImportImageTasksRequest,
  DescribeImportSnapshotTasksRequest,
  ImportImageRequest,
  ImportSnapshotRequest,
  UserBucket,
} from '@aws-sdk/client-ec2';
import { type ImportState, passes, tagsFor } from './cloud-state.ts';
import { AwsError } from './model.ts';
import type { Region } from './region.ts';

/** Operations of EC2 that import images from S3. */
export const IMPORT_OPERATIONS = {
  ImportSnapshot(region: Region, input: ImportSnapshotRequest) {
    const { UserBucket: bucket = {}, Format: format = '' } = input.DiskContainer ?? {};
    const tags = tagsFor('import-snapshot-task', input.TagSpecifications);
    const task = start(region, region.snapshotImports, { bucket, format, tags, token: input.ClientToken });
    return { ImportTaskId: task.id, SnapshotTaskDetail: detail(task), Tags: task.tags };
  },
  async DescribeImportSnapshotTasks(region: Region, input: DescribeImportSnapshotTasksRequest) {
    const { ImportTaskIds: ids } = input;
    const listed = ids ? ids.map((id) => region.snapshotImports.get(id)) : region.snapshotImports.list();
    const { page, next } = tasksOf(region, listed, input);
    for (const task of page) await region.proceed(task);
    return {
      NextToken: next,
      ImportSnapshotTasks: page.map((task) => ({
        ImportTaskId: task.id,
        SnapshotTaskDetail: detail(task),
        Tags: task.tags,
      })),
    };
  },
  ImportImage(region: Region, input: ImportImageRequest) {
    const { UserBucket: bucket = {}, Format: format = '' } = input.DiskContainers?.[0] ?? {};
    const tags = tagsFor('import-image-task', input.TagSpecifications);
    const token = input.ClientToken;
    const { Architecture: architecture = 'x86_64' } = input;
    const task = start(region, region.imageImports, { bucket, format, tags, token, architecture });
    return { ImportTaskId: task.id, Status: task.status, StatusMessage: task.statusMessage, Tags: task.tags };
  },
  async DescribeImportImageTasks(region: Region, input: DescribeImportImageTasksRequest) {
    const { ImportTaskIds: ids } = input;
    const listed = ids ? ids.map((id) => region.imageImports.get(id)) : region.imageImports.list();
    const { page, next } = tasksOf(region, listed, input);
    for (const task of page) await region.proceed(task);
    return {
      NextToken: next,
      ImportImageTasks: page.map((task) => ({
        ImportTaskId: task.id,
        Status: task.status,
        StatusMessage: task.statusMessage,
        ...(task.imageId !== undefined && { ImageId: task.imageId }),
        SnapshotDetails: task.snapshotId === undefined ? [] : [{ SnapshotId: task.snapshotId }],
        Tags: task.tags,
      })),
    };
  },
  CancelImportTask(region: Region, { ImportTaskId: id = '' }: { readonly ImportTaskId?: string }) {
    const task = region.snapshotImports.find(id) ?? region.imageImports.get(id);
    if (task.status === 'active') {
      task.status = 'deleted';
      task.statusMessage = 'cancelled by user request';
    }
    return { ImportTaskId: task.id, State: task.status };
  },
};

/** Returns a page of tasks. Tasks can be filtered only by state. */
function tasksOf(
  region: Region,
  listed: readonly ImportState[],
  { Filters: filters, MaxResults, NextToken }: DescribeImportSnapshotTasksRequest,
): { page: readonly ImportState[]; next: string | undefined } {
  const other = filters?.find(({ Name: name }) => name !== 'task-state');
  if (other) throw new AwsError('InvalidParameterValue', `The filter '${other.Name}' is invalid`);
  const found = listed.filter((task) => passes(task, filters, { 'task-state': task.status }));
  return region.page(found, MaxResults, NextToken);
}

interface Start {
  readonly bucket: UserBucket;
  readonly format: string;
  readonly tags: ImportState['tags'];
  readonly token: string | undefined;
  readonly architecture?: string;
}

function start(region: Region, tasks: Region['snapshotImports'], wanted: Start): ImportState {
  const { bucket, format, tags, token, architecture = 'x86_64' } = wanted;
  if (!bucket.S3Bucket || !bucket.S3Key) {
    throw new AwsError('InvalidParameter', 'The disk container has no S3 bucket and key');
  }
  if (!/^(?:raw|vhd|vhdx|vmdk|ova)$/i.test(format)) {
    throw new AwsError('InvalidParameter', `The format '${format}' is not supported`);
  }
  const known = tasks.all().find((task) => token && task.clientToken === token);
  if (known !== undefined) return known;
  const active = tasks.all().filter(({ status }) => status === 'active').length;
  if (active >= region.options.importTasks) {
    const reason = `You have reached your limit of ${region.options.importTasks} active import tasks`;
    throw new AwsError('ResourceCountLimitExceeded', reason);
  }
  return tasks.add({
    bucket,
    format,
    clientToken: token,
    architecture,
    tags,
    status: 'active',
    statusMessage: 'pending',
    pendingLists: region.options.pendingLists,
  });
}

function detail(task: ImportState): Record<string, unknown> {
  return {
    Format: task.format.toUpperCase(),
    Progress: task.status === 'active' ? '40' : '100',
    Status: task.status,
    StatusMessage: task.statusMessage,
    UserBucket: { S3Bucket: task.bucket.S3Bucket, S3Key: task.bucket.S3Key },
    ...(task.snapshotId !== undefined && { SnapshotId: task.snapshotId }),
  };
}
