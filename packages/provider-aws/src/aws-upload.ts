import type { Tag } from '@aws-sdk/client-ec2';
import type { ImageFile, Logger, SettingsOf, UploadRequest } from '@nodepool-builder/image-builder';
import {
  type CloudClaim,
  type CloudUpload,
  Mutex,
  RecordDirectory,
  safeName,
  type UploadRecords,
  writeDurably,
} from '@nodepool-builder/image-builder/module-kit';
import { toTags } from './amis.ts';
import type { AwsRegion } from './aws-session.ts';
import type { AwsEntry } from './aws-settings.ts';

/** What one upload needs. */
export interface AwsUpload extends CloudUpload {
  readonly region: AwsRegion;
  readonly entry: AwsEntry;
  readonly records: UploadRecords<typeof UPLOAD>;
  readonly bases: SnapshotBases;
  /** Seconds between two looks at something that is pending, at most. */
  readonly interval: number;
  readonly logger: Logger;
}

/** Tags of the AMI and the snapshots of an upload. AWS takes 50, with 256 characters each. */
export function uploadTags(entry: AwsEntry, { name, tags }: Pick<CloudClaim, 'name' | 'tags'>): Tag[] {
  return toTags({ ...entry.tags, ...tags, Name: name });
}

/** Other names of AWS's architectures. */
const ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['aarch64', 'arm64'],
  ['amd64', 'x86_64'],
]);

/** Architecture of an image, in AWS's spelling. */
export function architectureOf(entry: AwsEntry, { metadata }: UploadRequest): string {
  const { architecture = entry.architecture } = metadata ?? {};
  return architectureName(architecture);
}

/** An architecture in AWS's spelling. */
export function architectureName(architecture: string): string {
  return ARCHITECTURES.get(architecture) ?? architecture;
}

/** GiB of a volume that holds the file. */
export function volumeSize(entry: AwsEntry, { size }: ImageFile): number {
  return Math.max(entry['volume-size'] ?? 1, Math.ceil(size / 2 ** 30));
}

const TEXT = { type: 'string', minLength: 1 } as const;

/** Ending of a list of blocks beside a record. */
export const BLOCKS = '.blocks';

/** An unfinished upload. */
export const UPLOAD = {
  type: 'object',
  required: ['upload-id'],
  properties: {
    'upload-id': TEXT,
    /** Body of StartSnapshot, with its client token. */
    'start-request': TEXT,
    /** Client token of the import. */
    token: TEXT,
    /** Snapshot that the new one begins with. */
    parent: TEXT,
    'snapshot-id': TEXT,
  },
} as const;

const BASE = {
  type: 'object',
  required: ['snapshot-id', 'volume-size', 'sha256'],
  properties: {
    'snapshot-id': TEXT,
    'volume-size': { type: 'integer', minimum: 1 },
    /** Of the list of blocks. */
    sha256: TEXT,
  },
} as const;

/** The last snapshot of each image of a provider, with the digests of its blocks, for this host's next upload of the image. */
export class SnapshotBases {
  readonly #records: RecordDirectory<typeof BASE>;
  readonly #writing = new Mutex();

  /** @param directory it is created with the first record */
  constructor(directory: string) {
    this.#records = new RecordDirectory(directory, BASE, [BLOCKS]);
  }

  async read(imageName: string): Promise<SettingsOf<typeof BASE> | undefined> {
    return await this.#records.read(safeName(imageName));
  }

  /** Uploads of one image may end at the same time. */
  async write(imageName: string, record: SettingsOf<typeof BASE>, blocks: Uint8Array): Promise<void> {
    await this.#writing.run(async () => {
      await this.#records.write(safeName(imageName), record);
      await writeDurably(this.blocks(imageName), blocks);
    });
  }

  blocks(imageName: string): string {
    return this.#records.file(safeName(imageName), BLOCKS);
  }
}

export type UploadRecord = SettingsOf<typeof UPLOAD>;
