import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, runCheck } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { ObjectStore } from './object-store.ts';
import { StoredImages } from './stored-images.ts';

/** Id of a nonexistent multipart upload. */
const NO_UPLOAD = 'VXBsb2FkSWQgb2YgdGhlIGRvY3Rvcg';

/** Action in an AWS error message. It may differ from the action of the request, because KMS keys require their own. */
const ACTION = /not authorized to perform: ([\w:]+)/;

/** Lists the images of a bucket, and checks the permissions for uploads. */
export async function* diagnoseBucket(store: ObjectStore, signal: AbortSignal): AsyncGenerator<CheckResult> {
  const subject = `bucket ${store.bucket} of provider ${store.provider}`;
  const listed = await runCheck(subject, signal, async () => {
    const { length } = await new StoredImages(store).whole(signal);
    return `has ${length} ${length === 1 ? 'image' : 'images'}`;
  });
  yield listed;
  if (listed.status === 'ok')
    yield await diagnoseUploads(`permissions for uploads to ${subject}`, store, signal);
}

/**
 * Sends each kind of request that an upload needs, for objects that do not exist. Also starts and aborts a multipart
 * upload of one byte. Leaves nothing in the bucket.
 */
async function diagnoseUploads(
  subject: string,
  store: ObjectStore,
  signal: AbortSignal,
): Promise<CheckResult> {
  const Key = `${store.keys.records}doctor`;
  const object = { Bucket: store.bucket, Key };
  const missing = new Set<string>();
  const ask = async <T>(
    action: string,
    send: Parameters<typeof store.call<T>>[3],
  ): Promise<T | undefined> => {
    try {
      return await store.call(action, Key, signal, send);
    } catch (error) {
      if (!(error instanceof CloudError) || (error.code !== 'forbidden' && error.code !== 'not-found'))
        throw error;
      if (error.code === 'forbidden') missing.add(ACTION.exec(error.message)?.[1] ?? action);
      return undefined;
    }
  };
  const unknown = { ...object, UploadId: NO_UPLOAD };
  const checked = await attempt(subject, signal, async () => {
    await ask('s3:ListBucketMultipartUploads', (client, options) =>
      client.listMultipartUploads({ Bucket: store.bucket, Prefix: Key }, options),
    );
    await ask('s3:ListMultipartUploadParts', (client, options) => client.listParts(unknown, options));
    await ask('s3:GetObject', (client, options) => client.getObject(object, options));
    await ask('s3:DeleteObject', (client, options) => client.deleteObject(object, options));
    const abort = async (UploadId: string): Promise<unknown> =>
      await ask('s3:AbortMultipartUpload', (client, options) =>
        client.abortMultipartUpload({ ...object, UploadId }, options),
      );
    await abort(NO_UPLOAD);
    const part = { ...unknown, PartNumber: 1, Body: Buffer.alloc(1) };
    await ask('s3:PutObject', (client, options) => client.uploadPart(part, options));
    // Without the permission to abort it, a multipart upload would remain.
    if (missing.size > 0) return;
    const begun = await ask('s3:PutObject', (client, options) =>
      client.createMultipartUpload(object, options),
    );
    const { UploadId = NO_UPLOAD } = begun ?? {};
    try {
      await ask('s3:PutObject', (client, options) => client.uploadPart({ ...part, UploadId }, options));
    } finally {
      await abort(UploadId);
    }
  });
  if (checked.problem) return checked.problem;
  if (missing.size === 0)
    return { subject, status: 'ok', message: 'the requests of an upload are permitted' };
  const remedy = 'add these actions to the policy of the user or the role';
  return { subject, status: 'problem', message: `lack ${[...missing].join(', ')}`, remedy };
}
