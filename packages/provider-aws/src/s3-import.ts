import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { metered, portion } from '@nodepool-builder/image-builder/internal';
import { cloudError, IMAGE_TAGS, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { readTags, removeSnapshot, snapshotsWith } from './amis.ts';
import { awsCode } from './aws-error.ts';
import { type AwsUpload, architectureOf, uploadTags } from './aws-upload.ts';

/** AWS names of the formats that it imports. */
const FORMATS: Readonly<Record<string, string>> = {
  raw: 'RAW',
  vhd: 'VHD',
  vpc: 'VHD',
  'vhd-fixed': 'VHD',
  vhdx: 'VHDX',
  vmdk: 'VMDK',
};

/** Percentage of an upload's progress for the transfer to S3. */
const TRANSFER = 80;

/** Size of a part in bytes. S3 accepts 10,000 parts. */
const PART_SIZE = 16 * 2 ** 20;
const MAX_PARTS = 9_000;

/** Max parts in memory. */
const PARTS_AT_A_TIME = 4;

/** Seconds until a further import may be possible. */
const IMPORT_PAUSE = 30;

/** Returns the prefix of the key of an upload's object, by which any process finds it. */
function keyPrefix(uploadId: string): string {
  return `nodepool-builder/${encodeURIComponent(uploadId)}/`;
}

/** Sends the file to S3 and lets AWS import it as a snapshot. @returns snapshot id */
export async function importSnapshot(upload: AwsUpload): Promise<string> {
  const { region, entry, request, signal } = upload;
  const ec2 = region.ec2(signal);
  const [found] = await snapshotsWith(region, 'uploadId', request.uploadId, signal);
  if (found?.SnapshotId !== undefined) return found.SnapshotId;
  const tags = uploadTags(entry, upload);
  const snapshotId = await withObject(upload, async (bucket, token) => {
    const input = {
      ClientToken: token,
      Description: `nodepool-builder: ${request.imageId}`,
      DiskContainer: { Format: formatOf(upload), UserBucket: bucket },
      ...role(upload),
      TagSpecifications: [{ ResourceType: 'import-snapshot-task' as const, Tags: tags }],
    };
    const id = await startImport(upload, () => ec2.importSnapshot(input));
    return await waitForImport(upload, async () => {
      const query = ec2.describeImportSnapshotTasks({ ImportTaskIds: [id] });
      // The list may not contain a new task yet.
      const { ImportSnapshotTasks: [task] = [] } = (await query.catch(unlessAbsent)) ?? {};
      const { Status, StatusMessage, SnapshotId, Progress } = task?.SnapshotTaskDetail ?? {};
      return { id, status: Status, message: StatusMessage, result: SnapshotId, progress: Progress };
    });
  });
  await ec2.createTags({ Resources: [snapshotId], Tags: tags });
  return snapshotId;
}

/** Sends the file to S3 and lets AWS import it as an AMI. @returns AMI id */
export async function importImage(upload: AwsUpload): Promise<string> {
  const { region, entry, request, signal } = upload;
  const ec2 = region.ec2(signal);
  const tags = uploadTags(entry, upload);
  let snapshots: string[] = [];
  const imageId = await withObject(upload, async (bucket, token) => {
    const input = {
      ClientToken: token,
      Description: `nodepool-builder: ${request.imageId}`,
      Architecture: architectureOf(entry, request),
      DiskContainers: [{ Format: formatOf(upload), UserBucket: bucket }],
      ...(entry['boot-mode'] && { BootMode: bootMode(entry['boot-mode']) }),
      ...role(upload),
      TagSpecifications: [{ ResourceType: 'import-image-task' as const, Tags: tags }],
    };
    const id = await startImport(upload, () => ec2.importImage(input));
    return await waitForImport(upload, async () => {
      const query = ec2.describeImportImageTasks({ ImportTaskIds: [id] });
      const { ImportImageTasks: [task] = [] } = (await query.catch(unlessAbsent)) ?? {};
      snapshots = task?.SnapshotDetails?.flatMap(({ SnapshotId }) => SnapshotId ?? []) ?? [];
      const { Status, StatusMessage, ImageId, Progress } = task ?? {};
      return { id, status: Status, message: StatusMessage, result: ImageId, progress: Progress };
    });
  });
  // Last, because the next attempt takes an image with these tags as it is, and would leave the object.
  await ec2.createTags({ Resources: [imageId, ...snapshots], Tags: tags });
  return imageId;
}

/** Returns the boot mode for ImportImage, which supports two of the three boot modes. */
function bootMode(mode: string): 'legacy-bios' | 'uefi' {
  return mode === 'legacy-bios' ? mode : 'uefi';
}

function role({ entry }: AwsUpload): { RoleName?: string } {
  const RoleName = entry['import-role-name'];
  return RoleName === undefined ? {} : { RoleName };
}

function formatOf({ entry, request }: AwsUpload): string {
  const { format } = request.file;
  const name = FORMATS[format];
  if (name !== undefined) return name;
  const reason = `AWS cannot import the format ${format}; set image-type: raw`;
  throw cloudError('bad-request', `provider ${entry.name}`, reason);
}

interface Place {
  readonly S3Bucket: string;
  readonly S3Key: string;
}

/** Stores the file in S3 while `work` runs. */
async function withObject(
  upload: AwsUpload,
  work: (place: Place, token: string) => Promise<string>,
): Promise<string> {
  const { region, entry, request, records, limit, signal, onProgress } = upload;
  const { 'bucket-name': Bucket = '' } = entry;
  const earlier = await records.read(request.uploadId);
  const record = { 'upload-id': request.uploadId, token: earlier?.token ?? randomUUID() };
  await records.write(request.uploadId, record);
  const Key = `${keyPrefix(request.uploadId)}${upload.name}`;
  const { size, path } = request.file;
  const s3 = region.s3(signal);
  if (earlier !== undefined) await abortTransfers({ region, signal }, Bucket, request.uploadId);
  const there = earlier && (await s3.headObject({ Bucket, Key }).catch(unlessAbsent));
  if (there?.ContentLength !== size) {
    const report = portion(onProgress, 0, TRANSFER);
    let done = 0;
    const pieces = metered(createReadStream(path, { highWaterMark: 2 ** 20 }), {
      limit,
      signal,
      onBytes: (bytes) => {
        done += bytes;
        report({ done, total: size });
      },
    });
    const { Upload } = await import('@aws-sdk/lib-storage');
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    signal.addEventListener('abort', abort, { once: true });
    try {
      await region.call('PutObject', signal, async () => {
        const transfer = new Upload({
          client: region.clients.s3,
          params: { Bucket, Key, Body: Readable.from(pieces, { objectMode: false }) },
          partSize: Math.max(PART_SIZE, Math.ceil(size / MAX_PARTS)),
          queueSize: PARTS_AT_A_TIME,
          abortController: stop,
        });
        await transfer.done();
      });
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
  const result = await work({ S3Bucket: Bucket, S3Key: Key }, record.token);
  await s3.deleteObject({ Bucket, Key });
  return result;
}

/** Starts an import. AWS limits the concurrent imports of an account and rejects further ones, which are retried. */
async function startImport(
  upload: AwsUpload,
  start: () => Promise<{ readonly ImportTaskId?: string | undefined }>,
): Promise<string> {
  const { entry, signal, interval } = upload;
  const look = async (): Promise<string | undefined> => {
    try {
      return (await start()).ImportTaskId ?? '';
    } catch (error) {
      if (awsCode(error) !== 'ResourceCountLimitExceeded') throw error;
      return undefined;
    }
  };
  const subject = `provider ${entry.name}: free import slot`;
  const pause = Math.max(interval, Math.min(IMPORT_PAUSE, interval * 6));
  return await poll(look, { subject, timeout: entry['image-import-timeout'], interval: pause, signal });
}

interface TaskState {
  readonly id: string;
  readonly status: string | undefined;
  readonly message: string | undefined;
  readonly result: string | undefined;
  readonly progress: string | undefined;
}

async function waitForImport(upload: AwsUpload, describe: () => Promise<TaskState>): Promise<string> {
  const { entry, signal, interval, onProgress } = upload;
  const subject = `provider ${entry.name}: import of ${upload.request.imageId}`;
  const report = portion(onProgress, TRANSFER, 100);
  const look = async (): Promise<string | undefined> => {
    const { id, status, message, result, progress } = await describe();
    if (status === 'completed' && result !== undefined) return result;
    if (status === 'deleted' || status === 'deleting') {
      throw cloudError('image-failed', `${subject} (${id})`, message ?? 'AWS gives no reason');
    }
    report({ done: Number(progress ?? 0), total: 100 });
    return undefined;
  };
  return await poll(look, { subject, timeout: entry['image-import-timeout'], interval, signal });
}

/** Ends an upload's import, and removes its results, its object, and parts of an interrupted transfer. */
export async function removeImport(
  { region, entry, signal }: Pick<AwsUpload, 'region' | 'entry' | 'signal'>,
  uploadId: string,
): Promise<void> {
  const ec2 = region.ec2(signal);
  // AWS filters tasks by state but not by tag.
  const snapshots = await region.list(
    'DescribeImportSnapshotTasks',
    (page) => ec2.describeImportSnapshotTasks(page),
    ({ ImportSnapshotTasks }) => ImportSnapshotTasks,
  );
  const images = await region.list(
    'DescribeImportImageTasks',
    (page) => ec2.describeImportImageTasks(page),
    ({ ImportImageTasks }) => ImportImageTasks,
  );
  const tasks = [
    ...snapshots.map(({ ImportTaskId, Tags, SnapshotTaskDetail: detail }) => ({
      ImportTaskId,
      Tags,
      status: detail?.Status,
      made: [detail?.SnapshotId],
    })),
    ...images.map(({ ImportTaskId, Tags, Status, ImageId, SnapshotDetails }) => ({
      ImportTaskId,
      Tags,
      status: Status,
      made: [ImageId, ...(SnapshotDetails ?? []).map(({ SnapshotId }) => SnapshotId)],
    })),
  ].filter(({ Tags }) => readTags(Tags)[IMAGE_TAGS.uploadId] === uploadId);
  for (const { ImportTaskId, status, made } of tasks) {
    if (status === 'active') await ec2.cancelImportTask({ ImportTaskId });
    for (const ImageId of made.filter((id) => id?.startsWith('ami-'))) {
      await ec2.deregisterImage({ ImageId }).catch(unlessAbsent);
    }
    for (const id of made) if (id?.startsWith('snap-')) await removeSnapshot(region, id, signal);
  }
  const { 'bucket-name': Bucket } = entry;
  if (Bucket === undefined) return;
  const s3 = region.s3(signal);
  await abortTransfers({ region, signal }, Bucket, uploadId);
  const { Contents: objects = [] } = await s3.listObjectsV2({ Bucket, Prefix: keyPrefix(uploadId) });
  for (const { Key } of objects) await s3.deleteObject({ Bucket, Key });
}

/** Aborts the multipart uploads of interrupted transfers. Their parts would be kept and billed. */
async function abortTransfers(
  { region, signal }: Pick<AwsUpload, 'region' | 'signal'>,
  Bucket: string,
  uploadId: string,
): Promise<void> {
  const s3 = region.s3(signal);
  const { Uploads: uploads = [] } = await s3.listMultipartUploads({ Bucket, Prefix: keyPrefix(uploadId) });
  for (const { Key, UploadId } of uploads) await s3.abortMultipartUpload({ Bucket, Key, UploadId });
}
