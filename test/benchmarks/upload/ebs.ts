import { join } from 'node:path';
import { BLOCK_SIZE } from '../../doubles/aws/snapshots.ts';
import type { Benchmark, BenchmarkContext, Measurement } from '../benchmark.ts';
import { Program } from '../program.ts';
import type { AwsKey } from './aws-signature.ts';
import { measureBlockUpload } from './block-upload.ts';
import { DISK_GIB } from './sparse-disk.ts';

/** Measures uploads to EBS direct against the AWS double, which runs in its own process. */
export const ebs: Benchmark = { name: 'ebs', run };

async function run(context: BenchmarkContext): Promise<Measurement[]> {
  const double = Program.start([process.execPath, join(import.meta.dirname, 'ebs-double.ts')], context);
  const address = await double.ask('address');
  return await measureBlockUpload(
    {
      name: 'EBS direct',
      provider: '@nodepool-builder/provider-aws',
      blockSize: BLOCK_SIZE,
      concurrency: 32,
      entry: { type: 'aws', 'region-name': 'us-east-1', endpoint: address },
      environment: { AWS_ACCESS_KEY_ID: KEY.id, AWS_SECRET_ACCESS_KEY: KEY.secret },
      hasDeltas: true,
      prepare: async (blocks) => {
        const response = await fetch(`${address}/snapshots`, {
          method: 'POST',
          headers: { authorization: AUTHORIZATION },
          body: JSON.stringify({ VolumeSize: DISK_GIB }),
        });
        const { SnapshotId: snapshot } = (await response.json()) as { SnapshotId: string };
        return {
          address,
          awsKey: KEY,
          blocks: blocks.map(({ index }) => ({
            index,
            target: `/snapshots/${snapshot}/blocks/${index}`,
            headers: {
              'x-amz-checksum-algorithm': 'SHA256',
              'x-amz-data-length': String(BLOCK_SIZE),
            },
          })),
        };
      },
      double,
    },
    context,
  );
}

const KEY: AwsKey = { id: 'bench', secret: 'bench', region: 'us-east-1', service: 'ebs' };

/** The double reads the service and the region from this header. */
const AUTHORIZATION = 'AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/ebs/aws4_request';
