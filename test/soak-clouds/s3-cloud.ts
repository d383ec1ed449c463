import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { S3 } from '@aws-sdk/client-s3';
import { startS3Server } from '../fixtures/s3/s3-server.ts';
import type { SoakCloud } from '../soak/soak-cloud.ts';
import { writeProfile } from './aws-profile.ts';
import { startFaultyService } from './faulty-service.ts';

const BUCKET = 'soak';

/** A bucket on a real S3 server. */
export async function s3Cloud(faultRate: number): Promise<SoakCloud> {
  const server = await startS3Server();
  const { endpoint, region, credentials } = server;
  const client = new S3({ endpoint, region, credentials, forcePathStyle: true });
  await client.createBucket({ Bucket: BUCKET });
  const profile = await writeProfile(credentials.accessKeyId, credentials.secretAccessKey);
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
      ...profile.settings,
      'image-type': 'raw',
    },
    images: async () => {
      const all = new Set(await keys());
      const images = [...all].filter((key) => IMAGE.test(key));
      return await Promise.all(
        images.map(async (key) => {
          const manifest = all.has(`${key}.json`) ? await read(`${key}.json`) : undefined;
          const { 'image-id': imageId = '' } = JSON.parse(String(Buffer.from(manifest ?? '{}'))) as Manifest;
          return {
            externalId: basename(key),
            imageId,
            flaw: manifest === undefined ? 'without a manifest' : undefined,
            isSame: async ({ md5 }) =>
              createHash('md5')
                .update(await read(key))
                .digest('hex') === md5,
          };
        }),
      );
    },
    orphans: async () => {
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
      await profile.remove();
    },
  };
}

interface Manifest {
  readonly 'image-id'?: string;
}

/** Parses `soak-0001-0f1e2d3c.raw`, and the prefix before it. */
const IMAGE = /^(?:.*\/)?[a-z]+-\d+-[0-9a-f]{8}\.raw$/;
const LATEST = /-latest\.raw\.json$/;
