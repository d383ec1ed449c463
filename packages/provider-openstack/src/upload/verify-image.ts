import { createHash, getHashes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Checksums, ImageFile } from '@nodepool-builder/image-builder';
import type { GlanceImage } from '../glance-image.ts';
import { OpenStackError } from '../openstack-error.ts';

/** What {@link verifyImage} compares. */
export interface Verification {
  readonly cloud: string;
  readonly file: ImageFile;
  /** The file's digests, as far as they need no further reading. */
  readonly checksums: () => Promise<Checksums>;
  /** The cloud may have converted the data: then it is another file, of another size. */
  readonly convertible: boolean;
  readonly signal: AbortSignal;
}

/**
 * Compares what a cloud stored with the file on disk: the length, and the digest that the cloud shows. The file is
 * read again only if the cloud shows none of the digests that are known.
 *
 * @throws OpenStackError `checksum-mismatch`
 */
export async function verifyImage(image: GlanceImage, verification: Verification): Promise<void> {
  const { file, checksums, convertible, signal } = verification;
  if (image.size !== file.size) {
    if (convertible) return;
    throw mismatch(image, verification, `has ${image.size ?? 0} bytes`, `${file.size}`);
  }
  const stored = storedDigest(image);
  if (stored === undefined) return;
  const { algorithm, value } = stored;
  const known: Readonly<Record<string, string>> = { ...(await checksums()) };
  const expected = known[algorithm] ?? (await digestOf(file.path, algorithm, signal));
  if (value !== expected) throw mismatch(image, verification, `has ${algorithm} ${value}`, expected);
}

/** md5 first: it is the one that is known most often. Undefined if the cloud shows none that can be computed here. */
export function storedDigest({
  checksum,
  hash,
}: GlanceImage): { algorithm: string; value: string } | undefined {
  if (checksum !== undefined) return { algorithm: 'md5', value: checksum };
  return hash !== undefined && getHashes().includes(hash.algorithm) ? hash : undefined;
}

async function digestOf(path: string, algorithm: string, signal: AbortSignal): Promise<string> {
  const hash = createHash(algorithm);
  for await (const piece of createReadStream(path, { signal })) hash.update(piece as Buffer);
  return hash.digest('hex');
}

function mismatch(
  { id }: GlanceImage,
  { cloud, file }: Verification,
  has: string,
  expected: string,
): OpenStackError {
  return new OpenStackError(
    'checksum-mismatch',
    `cloud ${cloud}: image ${id} ${has}, but ${file.path} has ${expected}: it changed on its way or on disk; upload it again, and if that fails too, build it again`,
  );
}
