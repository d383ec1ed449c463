import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { IMAGE_TAGS } from '@nodepool-builder/image-builder/plugin';
import { AwsDouble } from '../doubles/aws/aws-double.ts';
import { AwsError } from '../doubles/aws/model.ts';
import { allBlocks, BLOCK_SIZE } from '../doubles/aws/snapshots.ts';
import type { SoakCloud, SoakImage } from '../soak/soak-cloud.ts';
import { writeProfile } from './aws-profile.ts';

/** Errors as AWS reports them. A lost response to a request that was carried out is the worst one. */
const FAULTS = [
  () => new AwsError('RequestLimitExceeded', 'Request limit exceeded.', 503),
  () => new AwsError('ThrottlingException', 'Rate exceeded', 400),
  () => new AwsError('InternalError', 'An internal error has occurred', 500),
  () => 'lost' as const,
];

/** Opens the EC2 and EBS direct double, whose lists are eventually consistent. */
export async function awsCloud(faultRate: number): Promise<SoakCloud> {
  const profile = await writeProfile('soak', 'soak');
  const double = await AwsDouble.start({ lag: 1, pendingLists: 1 });
  const region = double.region();
  let [requests, faults] = [0, 0];
  double.fault = () => {
    double.requests.length = 0; // requests keep their blocks in memory
    requests += 1;
    if (Math.random() >= faultRate) return undefined;
    faults += 1;
    return FAULTS[Math.floor(Math.random() * FAULTS.length)]?.();
  };
  return {
    entry: {
      name: 'aws',
      type: 'aws',
      'region-name': region.name,
      endpoint: double.endpoint,
      'image-type': 'raw',
      ...profile.settings,
    },
    images: async () =>
      region.images.all().map((image) => ({
        externalId: image.id,
        imageId: image.tags.find(({ Key }) => Key === IMAGE_TAGS.imageId)?.Value ?? '',
        flaw: image.state === 'available' ? undefined : image.state,
        isSame: async (file) => {
          const [snapshot] = image.snapshots.map((id) => region.snapshots.get(id));
          return snapshot !== undefined && (await digestsOf(file)) === digestsIn(allBlocks(snapshot));
        },
      })),
    orphans: async () => {
      const used = new Set(region.images.all().flatMap(({ snapshots }) => snapshots));
      return region.snapshots
        .all()
        .filter(({ id }) => !used.has(id))
        .map(({ id, state }) => `snapshot ${id} (${state}) belongs to no image`);
    },
    traffic: () => ({ requests, faults }),
    close: async () => {
      await double[Symbol.asyncDispose]();
      await profile.remove();
    },
  };
}

const ZEROS = createHash('sha256').update(Buffer.alloc(BLOCK_SIZE)).digest('base64');

async function digestsOf({ path }: SoakImage): Promise<string> {
  const bytes = await readFile(path);
  const blocks = new Map<number, string>();
  for (let index = 0; index * BLOCK_SIZE < bytes.length; index += 1) {
    const block = Buffer.alloc(BLOCK_SIZE);
    bytes.copy(block, 0, index * BLOCK_SIZE);
    blocks.set(index, createHash('sha256').update(block).digest('base64'));
  }
  return digestsIn(blocks);
}

/** A block of zeros equals a missing block. */
function digestsIn(blocks: ReadonlyMap<number, string>): string {
  const sorted = [...blocks].toSorted(([one], [other]) => one - other);
  return JSON.stringify(sorted.filter(([, digest]) => digest !== ZEROS));
}
