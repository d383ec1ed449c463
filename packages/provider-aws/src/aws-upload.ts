import type {
  ClaimRequest,
  ImageFile,
  Logger,
  Progress,
  UploadRequest,
} from '@nodepool-builder/image-builder';
import {
  type BandwidthLimit,
  cloudImageName,
  fileTags,
  imageTags,
  Mutex,
  RecordDirectory,
  safeName,
  writeDurably,
} from '@nodepool-builder/image-builder/module-kit';
import type { AwsRegion } from './aws-session.ts';
import type { AwsEntry } from './aws-settings.ts';

/** What one upload needs. */
export interface AwsUpload {
  readonly region: AwsRegion;
  readonly entry: AwsEntry;
  readonly request: UploadRequest;
  readonly records: UploadRecords;
  /** Seconds between two looks at something that is pending, at most. */
  readonly interval: number;
  readonly limit: BandwidthLimit | undefined;
  readonly logger: Logger;
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal;
}

/** `image-import-timeout`, in seconds. */
export function importTimeout(entry: AwsEntry): number {
  return entry['image-import-timeout'] ?? 3600;
}

/** Tags of the AMI and the snapshots of an upload. AWS takes 50, with 256 characters each. */
export function uploadTags(
  entry: AwsEntry,
  request: ClaimRequest & Partial<UploadRequest>,
): Record<string, string> {
  return {
    ...entry.tags,
    ...request.metadata,
    Name: cloudImageName(request),
    ...imageTags(entry.name, request),
    ...(request.file && fileTags(request.file)),
  };
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
const BLOCKS = '.blocks';

const UPLOAD = {
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

/**
 * Records of a provider on this host: one for each unfinished upload, written before the cloud gets the request that
 * creates something, and one for the last snapshot of each image, with the digests of its blocks.
 */
export class UploadRecords {
  readonly #uploads: RecordDirectory<typeof UPLOAD>;
  readonly #bases: RecordDirectory<typeof BASE>;
  readonly #writing = new Mutex();

  /** @param directory it is created with the first record */
  constructor(directory: string) {
    this.#uploads = new RecordDirectory(`${directory}/unfinished`, UPLOAD, [BLOCKS]);
    this.#bases = new RecordDirectory(`${directory}/bases`, BASE, [BLOCKS]);
  }

  readonly upload = {
    read: async (uploadId: string) => await this.#uploads.read(safeName(uploadId)),
    write: async (record: Parameters<RecordDirectory<typeof UPLOAD>['write']>[1]): Promise<void> =>
      await this.#uploads.write(safeName(record['upload-id']), record),
    remove: async (uploadId: string): Promise<void> => await this.#uploads.remove(safeName(uploadId)),
    /** Path of the list of its blocks. */
    blocks: (uploadId: string): string => this.#uploads.file(safeName(uploadId), BLOCKS),
  };

  readonly base = {
    read: async (imageName: string) => await this.#bases.read(safeName(imageName)),
    /** Uploads of one image may end at the same time. */
    write: async (
      imageName: string,
      record: Parameters<RecordDirectory<typeof BASE>['write']>[1],
      blocks: Uint8Array,
    ): Promise<void> =>
      await this.#writing.run(async () => {
        await this.#bases.write(safeName(imageName), record);
        await writeDurably(this.base.blocks(imageName), blocks);
      }),
    blocks: (imageName: string): string => this.#bases.file(safeName(imageName), BLOCKS),
  };
}

export type UploadRecord = NonNullable<Awaited<ReturnType<UploadRecords['upload']['read']>>>;
