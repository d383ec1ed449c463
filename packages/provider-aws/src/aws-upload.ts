import type { Tag } from '@aws-sdk/client-ec2';
import type { ImageFile, Logger, SettingsOf, UploadRequest } from '@nodepool-builder/image-builder';
import { Mutex, RecordDirectory, safeName, writeDurably } from '@nodepool-builder/image-builder/internal';
import type { CloudClaim, CloudUpload, UploadRecords } from '@nodepool-builder/image-builder/plugin';
import { toTags } from './amis.ts';
import type { AwsRegion } from './aws-session.ts';
import type { AwsEntry } from './aws-settings.ts';

/** Parameters of one upload. */
export interface AwsUpload extends CloudUpload {
  readonly region: AwsRegion;
  readonly entry: AwsEntry;
  readonly records: UploadRecords<typeof UPLOAD>;
  readonly bases: SnapshotBases;
  /** Max seconds between two polls of a pending resource. */
  readonly interval: number;
  readonly logger: Logger;
}

/** Returns the tags of an upload's AMI and snapshots. AWS accepts up to 50 tags of 256 characters each. */
export function uploadTags(entry: AwsEntry, { name, tags }: Pick<CloudClaim, 'name' | 'tags'>): Tag[] {
  return toTags({ ...entry.tags, ...tags, Name: name });
}

/** Max length of an AMI name. */
export const MAX_NAME_LENGTH = 128;
/** Characters that an AMI name cannot contain. */
export const FORBIDDEN: RegExp = /[^A-Za-z0-9()[\] ./\-'@_]/g;

/** Alternative names of AWS architectures. */
const ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['aarch64', 'arm64'],
  ['amd64', 'x86_64'],
]);

/** Returns the architecture of an image, in AWS spelling. */
export function architectureOf(entry: AwsEntry, { metadata }: UploadRequest): string {
  const { architecture = entry.architecture } = metadata ?? {};
  return architectureName(architecture);
}

/** Returns an architecture in AWS spelling. */
export function architectureName(architecture: string): string {
  return ARCHITECTURES.get(architecture) ?? architecture;
}

/** Returns the size in GiB of a volume that holds the file. */
export function volumeSize(entry: AwsEntry, { size }: ImageFile): number {
  return Math.max(entry['volume-size'] ?? 1, Math.ceil(size / 2 ** 30));
}

const TEXT = { type: 'string', minLength: 1 } as const;

/** File extension of the block list next to a record. */
export const BLOCKS = '.blocks';

/** An unfinished upload. */
export const UPLOAD = {
  type: 'object',
  required: ['upload-id'],
  properties: {
    'upload-id': TEXT,
    /** Body of the StartSnapshot request, including its client token. */
    'start-request': TEXT,
    /** Client token of the import. */
    token: TEXT,
    /** Parent of the new snapshot. */
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
    /** SHA-256 of the block list. */
    sha256: TEXT,
  },
} as const;

/**
 * Records of the latest snapshot of each image of a provider, with its block digests. This host's next upload of the
 * image starts from it.
 */
export class SnapshotBases {
  readonly #records: RecordDirectory<typeof BASE>;
  readonly #writing = new Mutex();

  /** @param directory created with the first record */
  constructor(directory: string) {
    this.#records = new RecordDirectory(directory, BASE, [BLOCKS]);
  }

  async read(imageName: string): Promise<SettingsOf<typeof BASE> | undefined> {
    return await this.#records.read(safeName(imageName));
  }

  /** Writes a record. Safe when several uploads of one image end at the same time. */
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
