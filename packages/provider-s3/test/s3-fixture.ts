import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { S3 } from '@aws-sdk/client-s3';
import type { ImageFormat, Logger, UploadRequest } from '@nodepool-builder/image-builder';
import { checksumsOf, readSettings } from '@nodepool-builder/image-builder/internal';
import { startS3Server } from '../../../test/fixtures/s3/s3-server.ts';
import { S3Provider } from '../src/s3-provider.ts';
import { S3_SETTINGS, type S3Entry } from '../src/s3-settings.ts';

/** S3 server of a test file. */
const server = await startS3Server();
after(() => server.stop());

/** A bucket of one test, and everything that its providers need. */
export interface S3Fixture {
  readonly client: S3;
  readonly bucket: string;
  readonly directory: string;
  readonly lines: string[];
  /** Requests of the providers. */
  readonly tasks: string[];
  readonly secret: string;
  readonly entry: (settings?: Partial<S3Entry>) => S3Entry;
  readonly open: (settings?: Partial<S3Entry>, formats?: readonly ImageFormat[]) => S3Provider;
  /** Lists the keys of all objects. */
  readonly keys: () => Promise<string[]>;
}

export async function s3Fixture(t: TestContext): Promise<S3Fixture> {
  const { endpoint, region, credentials } = server;
  const client = new S3({ endpoint, region, credentials, forcePathStyle: true });
  t.after(() => client.destroy());
  const bucket = `images-${randomUUID()}`;
  await client.createBucket({ Bucket: bucket });
  const directory = await mkdtemp(join(tmpdir(), 's3-'));
  t.after(() => rm(directory, { recursive: true }));
  const { accessKeyId, secretAccessKey: secret } = credentials;
  const file = join(directory, 'credentials');
  await writeFile(file, `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secret}\n`);
  const lines: string[] = [];
  const tasks: string[] = [];
  const log = (message: string): void => void lines.push(message);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const entry = (settings: Partial<S3Entry> = {}): S3Entry => ({
    ...readSettings(S3_SETTINGS, {}, (path) => path),
    name: 'store',
    images: [],
    endpoint,
    'bucket-name': bucket,
    'shared-credentials-file': file,
    ...settings,
  });
  return {
    client,
    bucket,
    directory,
    lines,
    tasks,
    secret,
    entry,
    open: (settings, formats = ['qcow2']) => {
      const provider = new S3Provider({
        entry: entry(settings),
        formats,
        logger,
        onTask: (task) => tasks.push(task),
      });
      t.after(() => provider.close());
      return provider;
    },
    keys: async () => {
      const { Contents: objects = [] } = await client.listObjectsV2({ Bucket: bucket });
      return objects.map(({ Key = '' }) => Key);
    },
  };
}

/** Of three parts. */
export const SIZE = 40 * 2 ** 20 + 5;

/** An upload of random bytes. */
export async function requestFor(
  { directory }: S3Fixture,
  { number = 1, size = SIZE }: { number?: number; size?: number } = {},
): Promise<UploadRequest> {
  const path = join(directory, `image${number}.raw`);
  await writeFile(path, randomBytes(size));
  return {
    uploadId: `u${number}`,
    imageId: `debian-000000000${number}`,
    imageName: 'debian',
    builtAt: new Date(Date.UTC(2026, 4, number)),
    file: { format: 'raw', path, size, checksums: await checksumsOf(path) },
  };
}
