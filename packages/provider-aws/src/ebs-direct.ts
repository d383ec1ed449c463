import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type {
  PutSnapshotBlockCommand,
  PutSnapshotBlockCommandInput,
  StartSnapshotRequest,
} from '@aws-sdk/client-ebs';
import type { Snapshot } from '@aws-sdk/client-ec2';
import type { UploadRequest } from '@nodepool-builder/image-builder';
import { readImageTags, sendBlocks, unlessMissing } from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  cloudError,
  poll,
  RetryPolicy,
  unlessAbsent,
} from '@nodepool-builder/image-builder/plugin';
import { readTags, removeSnapshot, snapshotsWith } from './amis.ts';
import { type AwsUpload, BLOCKS, type UploadRecord, uploadTags, volumeSize } from './aws-upload.ts';
import { type BlockDigests, BlockList, blockListBytes, parseBlockList, readBlockList } from './block-list.ts';

/** Size of an EBS block in bytes. */
const BLOCK_SIZE = 524_288;

/** Minutes without a block after which AWS abandons an unfinished snapshot. */
const IDLE_MINUTES = 240;

/** Retries while a new snapshot is unknown to the block servers, for up to two minutes. */
const UNKNOWN_SNAPSHOT = new RetryPolicy({
  attempts: 12,
  firstDelay: 0.5,
  maxDelay: 15,
  maxRetryAfter: 60,
});

/**
 * Creates a snapshot from the blocks of a raw image. It only sends blocks that are not zero and, if there is an earlier
 * snapshot of the same image, only blocks that changed. After an interruption, blocks that AWS has acknowledged are not
 * sent again.
 *
 * @returns snapshot id
 */
export async function uploadSnapshot(upload: AwsUpload): Promise<string> {
  const { region, request, records, signal } = upload;
  const found = await snapshotsWith(region, 'uploadId', request.uploadId, signal);
  const whole = found.find((snapshot) => snapshot.State === 'completed' && isOfFile(snapshot, request));
  if (whole?.SnapshotId !== undefined) return whole.SnapshotId;
  let record = await records.read(request.uploadId);
  const known = record?.['snapshot-id'];
  if (known !== undefined) {
    const snapshot = await describeSnapshot(upload, known);
    const isUsable = snapshot !== undefined && isOfFile(snapshot, request);
    if (isUsable && snapshot.State === 'completed') return known;
    if (!isUsable || snapshot.State !== 'pending') record = undefined;
  }
  let parent = await findParent(upload, record);
  if (record?.parent !== parent?.id) {
    record = undefined; // The block list of the parent is gone.
    parent = await findParent(upload, undefined);
  }
  if (record === undefined) {
    // Also removes snapshots that are not listed yet or whose id no process learned. Without the record nothing would
    // find them.
    await removeSnapshots(upload, request.uploadId);
    await records.remove(request.uploadId);
  } else {
    for (const { SnapshotId: id = '' } of found) {
      if (id !== record['snapshot-id']) await removeSnapshot(region, id, signal);
    }
  }
  const started = await start(upload, record, parent);
  const put = await sendSnapshot(upload, started.snapshotId, started.parent);
  await complete(upload, started.snapshotId, put);
  await remember(upload, started.snapshotId, new Map([...(started.parent?.digests ?? []), ...put]));
  return started.snapshotId;
}

/** Returns whether a snapshot contains the bytes of the file, as far as both have digests. */
function isOfFile({ Tags }: Snapshot, { file }: UploadRequest): boolean {
  return readImageTags(readTags(Tags))?.checksums?.sha256 === file.checksums?.sha256;
}

interface Parent {
  readonly id: string;
  readonly digests: BlockDigests;
}

/** Finds the latest snapshot of the same image, if it still exists in AWS and this host knows its blocks. */
async function findParent(upload: AwsUpload, record: UploadRecord | undefined): Promise<Parent | undefined> {
  const { entry, request, bases } = upload;
  if (record !== undefined && record.parent === undefined) return undefined;
  const base = await bases.read(request.imageName);
  if (base === undefined || base['volume-size'] > volumeSize(entry, request.file)) return undefined;
  const { 'snapshot-id': id, sha256 } = base;
  if (record !== undefined && record.parent !== id) return undefined;
  const bytes = await unlessMissing(readFile(bases.blocks(request.imageName)));
  if (bytes === undefined || createHash('sha256').update(bytes).digest('hex') !== sha256) return undefined;
  const snapshot = await describeSnapshot(upload, id);
  const isOurs = readImageTags(readTags(snapshot?.Tags))?.provider === entry.name;
  return isOurs && snapshot?.State === 'completed' ? { id, digests: parseBlockList(bytes) } : undefined;
}

/** Starts a snapshot, or finds the one that an earlier process started with the same record. */
async function start(
  upload: AwsUpload,
  earlier: UploadRecord | undefined,
  parent: Parent | undefined,
): Promise<{ snapshotId: string; parent: Parent | undefined }> {
  const { region, request, records, signal, logger } = upload;
  if (earlier?.['snapshot-id'] !== undefined) return { snapshotId: earlier['snapshot-id'], parent };
  const record = earlier ?? newRecord(upload, parent);
  await records.write(request.uploadId, record);
  try {
    const { SnapshotId: id = '' } = await region.ebs(signal).startSnapshot(startRequest(record));
    await records.write(request.uploadId, { ...record, 'snapshot-id': id });
    return { snapshotId: id, parent };
  } catch (error) {
    const isRefused = error instanceof CloudError && !error.retriable && parent !== undefined;
    if (!isRefused || error.code === 'forbidden' || error.code === 'auth-failed') throw error;
    logger.warn(`${error.message}; sending all blocks`);
    await records.remove(request.uploadId);
    return await start(upload, undefined, undefined);
  }
}

function newRecord(upload: AwsUpload, parent: Parent | undefined): UploadRecord {
  const { entry, request } = upload;
  const input: StartSnapshotRequest = {
    VolumeSize: volumeSize(entry, request.file),
    ClientToken: randomUUID(),
    Description: `nodepool-builder: ${request.imageId}`,
    Tags: uploadTags(entry, upload),
    Timeout: IDLE_MINUTES,
    ...(parent && { ParentSnapshotId: parent.id }),
  };
  return {
    'upload-id': request.uploadId,
    'start-request': JSON.stringify(input),
    ...(parent && { parent: parent.id }),
  };
}

/**
 * Restores the StartSnapshot request of a record. A repeated request has the same client token, so it creates no second
 * snapshot.
 */
function startRequest({ 'start-request': text = '{}' }: UploadRecord): StartSnapshotRequest {
  return JSON.parse(text) as StartSnapshotRequest;
}

/** @returns the digests of all blocks that were put, by this process or earlier ones */
async function sendSnapshot(
  upload: AwsUpload,
  id: string,
  parent: Parent | undefined,
): Promise<BlockDigests> {
  const { region, entry, request, records, limit, signal, onProgress } = upload;
  const path = records.file(request.uploadId, BLOCKS);
  const put = await readBlockList(path);
  const putBlock = await blockSender(upload);
  const list = await BlockList.open(path);
  try {
    await sendBlocks(request.file.path, {
      blockSize: BLOCK_SIZE,
      concurrency: entry['upload-concurrency'],
      isSkipped: (index) => put.has(index),
      also: parent?.digests.keys() ?? [],
      signal,
      onProgress,
      send: async ({ index, bytes }) => {
        const digest = createHash('sha256').update(bytes).digest();
        if (parent?.digests.get(index)?.equals(digest)) return;
        await limit?.take(bytes.length, signal);
        const block = {
          SnapshotId: id,
          BlockIndex: index,
          BlockData: bytes,
          DataLength: BLOCK_SIZE,
          Checksum: digest.toString('base64'),
          ChecksumAlgorithm: 'SHA256' as const,
        };
        await UNKNOWN_SNAPSHOT.run(
          async () =>
            await region.call('PutSnapshotBlock', signal, async () => await putBlock({ input: block })),
          {
            signal,
            mayRetry: (error) => error instanceof CloudError && error.code === 'not-found',
          },
        );
        list.add(index, digest);
        put.set(index, digest);
      },
    });
  } finally {
    await list[Symbol.asyncDispose]();
  }
  return put;
}

/**
 * Returns a function that sends blocks. It bypasses the SDK's send(), which assembles the middleware stack again for
 * each request.
 */
async function blockSender({ region, signal }: AwsUpload): Promise<BlockSender> {
  const { ebs } = region.clients;
  const { PutSnapshotBlockCommand } = await import('@aws-sdk/client-ebs'); // Imported here because loading takes long.
  const command = new PutSnapshotBlockCommand({} as PutSnapshotBlockCommandInput);
  return command.resolveMiddleware(ebs.middlewareStack, ebs.config, { abortSignal: signal });
}

type BlockSender = ReturnType<PutSnapshotBlockCommand['resolveMiddleware']>;

/** Lets AWS compare the digest of all blocks, and waits until the snapshot is usable. */
async function complete(upload: AwsUpload, id: string, put: BlockDigests): Promise<void> {
  const { region, entry, signal, interval } = upload;
  const hash = createHash('sha256');
  for (const [, digest] of [...put].toSorted(([one], [other]) => one - other)) hash.update(digest);
  const checksum = {
    Checksum: hash.digest('base64'),
    ChecksumAlgorithm: 'SHA256' as const,
    ChecksumAggregationMethod: 'LINEAR' as const,
  };
  try {
    const input = { SnapshotId: id, ChangedBlocksCount: put.size, ...(put.size > 0 && checksum) };
    await region.ebs(signal).completeSnapshot(input);
  } catch (error) {
    // AWS rejects a repeated request while it completes the snapshot, which happens if the first response was lost.
    const isRefused = error instanceof CloudError && !error.retriable;
    if (!isRefused || !(await becomesWhole(upload, id))) throw error;
  }
  const subject = `provider ${entry.name}: snapshot ${id}`;
  const look = async (): Promise<true | undefined> => {
    const snapshot = await describeSnapshot(upload, id);
    if (snapshot?.State === 'error') {
      throw cloudError('image-failed', subject, snapshot.StateMessage ?? 'AWS gives no reason');
    }
    return snapshot?.State === 'completed' ? true : undefined;
  };
  await poll(look, { subject, timeout: entry['image-import-timeout'], interval, signal });
}

/** Returns whether a snapshot that AWS refused to complete is nevertheless completed soon. */
async function becomesWhole(upload: AwsUpload, id: string): Promise<boolean> {
  const { signal, interval } = upload;
  const look = async (): Promise<boolean | undefined> => {
    const state = (await describeSnapshot(upload, id))?.State;
    return state === 'pending' ? undefined : state === 'completed';
  };
  try {
    return await poll(look, { subject: id, timeout: interval * 6, interval, signal });
  } catch (error) {
    if (error instanceof CloudError && error.code === 'image-timeout') return false;
    throw error;
  }
}

/** Stores the digests of all blocks for the next upload of the same image. */
async function remember(upload: AwsUpload, id: string, digests: BlockDigests): Promise<void> {
  const { entry, request, bases } = upload;
  const bytes = blockListBytes(digests);
  const base = {
    'snapshot-id': id,
    'volume-size': volumeSize(entry, request.file),
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
  await bases.write(request.imageName, base, bytes);
}

async function describeSnapshot(
  { region, signal }: Pick<AwsUpload, 'region' | 'signal'>,
  id: string,
): Promise<Snapshot | undefined> {
  const found = region.ec2(signal).describeSnapshots({ SnapshotIds: [id] });
  return (await found.catch(unlessAbsent))?.Snapshots?.[0];
}

/** Removes the snapshots of an upload, including one whose id no process learned. */
export async function removeSnapshots(
  upload: Pick<AwsUpload, 'region' | 'records' | 'signal'>,
  uploadId: string,
): Promise<void> {
  const { region, records, signal } = upload;
  const record = await records.read(uploadId);
  const ids = new Set(
    (await snapshotsWith(region, 'uploadId', uploadId, signal)).map(({ SnapshotId }) => SnapshotId ?? ''),
  );
  if (record?.['snapshot-id'] !== undefined) ids.add(record['snapshot-id']);
  else if (record?.['start-request'] !== undefined) {
    const started = await region.ebs(signal).startSnapshot(startRequest(record)).catch(unlessRefused);
    if (started?.SnapshotId !== undefined) ids.add(started.SnapshotId);
  }
  for (const id of ids) await removeSnapshot(region, id, signal);
}

/**
 * For `catch`: returns undefined if AWS rejected the repeated request. AWS repeats its response to a request that it
 * once accepted, so a rejected request has started nothing.
 */
function unlessRefused(error: unknown): undefined {
  if (error instanceof CloudError && /^(?:bad-request|not-found|quota-exceeded)$/.test(error.code)) return;
  throw error;
}
