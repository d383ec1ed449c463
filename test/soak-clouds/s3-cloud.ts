import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { S3 } from '@aws-sdk/client-s3';
import { startS3Server } from '../fixtures/s3/s3-server.ts';
import type { SoakCloud } from '../soak/soak-cloud.ts';
import { startFaultyService } from './faulty-service.ts';

const BUCKET = 'soak';

/** A bucket of a real server of S3. */
export async function s3Cloud(faultRate: number): Promise<SoakCloud> {
  const server = await startS3Server();
  const { endpoint, region, credentials } = server;
  const client = new S3({ endpoint, region, credentials, forcePathStyle: true });
  await client.createBucket({ Bucket: BUCKET });
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-s3-'));
  const file = join(directory, 'credentials');
  const { accessKeyId, secretAccessKey } = credentials;
  await writeFile(
    file,
    `[soak]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
  );
  const service = await startFaultyService(endpoint, faultRate);
  const read = async (key: string): Promise<Uint8Array> => {
    const { Body: body } = await client.getObject({ Bucket: BUCKET, Key: key });
    if (body === undefined) throw new Error(`object ${key} is empty`);
    return await body.transformToByteArray();
  };
  const keys = async (): Promise<readonly string[]> => {
    const { Contents: objects = [] } = await client.listObjectsV2({ Bucket: BUCKET });
    return objects.flatMap(({ Key: key }) => key ?? []);
  };
  return {
    entry: {
      name: 's3',
      type: 's3',
      'bucket-name': BUCKET,
      endpoint: service.proxy.url,
      'region-name': region,
      'shared-credentials-file': file,
      'profile-name': 'soak',
      'image-type': 'raw',
    },
    images: async () => {
      const all = new Set(await keys());
      const images = [...all].filter((key) => IMAGE.test(key));
      return await Promise.all(
        images.map(async (externalId) => {
          const manifest = all.has(`${externalId}.json`) ? await read(`${externalId}.json`) : undefined;
          const { 'image-id': imageId = '' } = JSON.parse(String(Buffer.from(manifest ?? '{}'))) as Manifest;
          return {
            externalId,
            imageId,
            flaw: manifest === undefined ? 'without a manifest' : undefined,
            isSame: async ({ md5 }) =>
              createHash('md5')
                .update(await read(externalId))
                .digest('hex') === md5,
          };
        }),
      );
    },
    remains: async () => {
      const [all, { Uploads: multiparts = [] }] = await Promise.all([
        keys(),
        client.listMultipartUploads({ Bucket: BUCKET }),
      ]);
      const images = new Set(all.filter((key) => IMAGE.test(key)));
      return [
        ...all
          .filter((key) => !images.has(key) && !images.has(key.replace(/\.json$/, '')) && !LATEST.test(key))
          .map((key) => `object ${key} belongs to no image`),
        ...multiparts.map(({ Key: key }) => `a multipart upload of ${key} is left`),
      ];
    },
    traffic: () => ({ requests: service.proxy.requests.length, faults: service.faults }),
    close: async () => {
      client.destroy();
      await service.proxy.close();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

interface Manifest {
  readonly 'image-id'?: string;
}

/** `soak-0001.raw`. */
const IMAGE = /^soak-\d+\.raw$/;
const LATEST = /^soak-latest\.raw\.json$/;
