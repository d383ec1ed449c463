import { ImageError } from '@nodepool-builder/image-builder';
import type { UnpackedObject } from './unpack-object.ts';

/** What is known of an artifact beforehand; what is absent is not checked. */
export interface ExpectedArtifact {
  /** Hexadecimal, of the unpacked file. */
  readonly sha256?: string;
  /** Hexadecimal, of the unpacked file. */
  readonly md5?: string;
  /** Bytes of the unpacked file. */
  readonly size?: number;
  /** Eight hexadecimal digits, of the object as it is stored: packed, that is. */
  readonly crc32?: string;
}

/** @throws ImageError `artifact-damaged`, with what was expected and what was found */
export function checkArtifact(
  name: string,
  { sha256, md5, size, crc32 }: ExpectedArtifact,
  { size: found, checksums, crc32: storedCrc32 }: UnpackedObject,
): void {
  const pairs = [
    ['crc32 of the stored object', crc32?.toLowerCase(), storedCrc32?.toString(16).padStart(8, '0')],
    ['size', size, found],
    ['sha256', sha256?.toLowerCase(), checksums.sha256],
    ['md5', md5?.toLowerCase(), checksums.md5],
  ] as const;
  for (const [what, wanted, is] of pairs) {
    if (wanted === undefined || wanted === is) continue;
    throw new ImageError(
      'artifact-damaged',
      `${name} is damaged: its ${what} is ${is}, and ${wanted} was expected; run the job that builds it again`,
    );
  }
}
