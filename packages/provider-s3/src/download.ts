import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { OperationOptions } from '@nodepool-builder/image-builder';
import {
  CloudError,
  type DirectoryManifest,
  signalOf,
  steadyProgress,
  writeSparse,
} from '@nodepool-builder/image-builder/module-kit';
import type { ObjectStore } from './object-store.ts';

/** Ending of a file that is being written. */
const PARTIAL = '.partial';

export interface Download extends OperationOptions {
  readonly store: ObjectStore;
  readonly key: string;
  readonly manifest: DirectoryManifest;
  /** The file appears there once it is whole. */
  readonly path: string;
}

/**
 * Downloads an image, with holes for zeros, and compares its SHA-256.
 *
 * @throws CloudError `image-failed` for other bytes
 */
export async function download({ store, key, manifest, path, ...options }: Download): Promise<void> {
  const signal = signalOf(options);
  const onProgress = steadyProgress(options.onProgress ?? (() => {}));
  const partial = path + PARTIAL;
  const file = await open(partial, 'w');
  try {
    const hash = createHash('sha256');
    let position = 0;
    await store.call('GetObject', key, signal, async (client, request) => {
      const { Body: body } = await client.getObject({ Bucket: store.bucket, Key: key }, request);
      for await (const chunk of body as Readable as AsyncIterable<Buffer>) {
        hash.update(chunk);
        await writeSparse(file, chunk, position);
        position += chunk.length;
        onProgress({ done: position, total: manifest.size });
      }
    });
    const sha256 = hash.digest('hex');
    if (sha256 !== manifest.sha256) {
      const reason = `its SHA-256 is ${sha256}, not ${manifest.sha256} as in its manifest`;
      throw new CloudError('image-failed', `object ${store.bucket}/${key}`, reason);
    }
    await file.truncate(position);
    await file.sync();
    await rename(partial, path);
  } finally {
    await file.close();
    await rm(partial, { force: true });
  }
}
