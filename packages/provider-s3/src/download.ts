import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, rename } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { OperationOptions } from '@nodepool-builder/image-builder';
import { type DirectoryManifest, withNewFile, writeSparse } from '@nodepool-builder/image-builder/internal';
import { CloudError, cloudError, signalOf, steadyProgress } from '@nodepool-builder/image-builder/plugin';
import type { ObjectStore } from './object-store.ts';

/** File extension of an incomplete download. */
const PARTIAL = '.partial';

/** Max consecutive requests without a byte before a download fails. The SDK also retries each of them. */
const ATTEMPTS = 6;

/** Milliseconds before the first reconnect. Each further delay is twice as long. */
const PAUSE = 1000;

export interface Download extends OperationOptions {
  readonly store: ObjectStore;
  readonly key: string;
  readonly manifest: DirectoryManifest;
  /** Path of the file, which appears once it is complete. */
  readonly path: string;
}

/**
 * Downloads an image to a sparse file and verifies its SHA-256. After a lost connection, it requests the rest. If the
 * store cannot confirm that the rest belongs to the same object, it requests the whole object again.
 *
 * @throws CloudError `image-failed` for wrong data
 */
export async function download({ store, key, manifest, path, ...options }: Download): Promise<void> {
  const signal = signalOf(options);
  const report = steadyProgress(options.onProgress ?? (() => {}));
  const partial = path + PARTIAL;
  await withNewFile(partial, `writing "${partial}"`, async (file) => {
    const fetched: Fetched = {
      file,
      hash: createHash('sha256'),
      position: 0,
      etag: undefined,
      mayResume: true,
    };
    const onBytes = (): void => report({ done: fetched.position, total: manifest.size });
    for (let failures = 0, before = 0; fetched.position < manifest.size; before = fetched.position) {
      try {
        await fetchRest(store, key, fetched, onBytes, signal);
        if (fetched.position === before) break;
      } catch (error) {
        failures = fetched.position === before || !fetched.mayResume ? failures + 1 : 1;
        const isRangeError = fetched.mayResume && isRefusedRange(error);
        const mayRetry = isRangeError || (error instanceof CloudError && error.retriable);
        if (failures >= ATTEMPTS || !mayRetry || fetched.position === 0) throw error;
        fetched.mayResume &&= !isRangeError;
        if (!fetched.mayResume) await restart(fetched);
        await delay(PAUSE * 2 ** (failures - 1), undefined, { signal });
      }
    }
    const sha256 = fetched.hash.digest('hex');
    if (sha256 !== manifest.sha256) {
      const reason = `its SHA-256 is ${sha256}, not ${manifest.sha256} as in its manifest`;
      throw cloudError('image-failed', `object ${store.bucket}/${key}`, reason);
    }
    await file.truncate(fetched.position);
    await file.sync();
  });
  await rename(partial, path);
}

/** The part of an image that has been received. */
interface Fetched {
  readonly file: FileHandle;
  hash: Hash;
  position: number;
  /** ETag of the object that the first bytes came from. The rest must have the same ETag. */
  etag: string | undefined;
  mayResume: boolean;
}

/**
 * Returns whether the store rejected a range request because the object's ETag has changed or the range does not exist.
 */
function isRefusedRange(error: unknown): boolean {
  const { code, cause } = error instanceof CloudError ? error : {};
  return code === 'conflict' || (cause instanceof Error && cause.name === 'InvalidRange');
}

async function restart(fetched: Fetched): Promise<void> {
  await fetched.file.truncate(0);
  Object.assign(fetched, { hash: createHash('sha256'), position: 0, etag: undefined });
}

/** Fetches the bytes from a position to the end. */
async function fetchRest(
  store: ObjectStore,
  key: string,
  fetched: Fetched,
  onBytes: () => void,
  signal: AbortSignal,
): Promise<void> {
  const { file, position, etag } = fetched;
  const rest = position > 0 && { Range: `bytes=${position}-`, ...(etag && { IfMatch: etag }) };
  await store.call('GetObject', key, signal, async (client, request) => {
    const response = await client.getObject({ Bucket: store.bucket, Key: key, ...rest }, request);
    if (position > 0 && response.ContentRange === undefined) await restart(fetched); // Without ContentRange, the store has ignored the range.
    fetched.etag ??= response.ETag;
    for await (const chunk of addAbortSignal(signal, response.Body as Readable) as AsyncIterable<Buffer>) {
      fetched.hash.update(chunk);
      await writeSparse(file, chunk, fetched.position);
      fetched.position += chunk.length;
      onBytes();
    }
  });
}
