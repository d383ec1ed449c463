import { checksumsOf, type Image, type ImageRepository, type Logger } from '@nodepool-builder/image-builder';
import { OtherCopyError } from './job-outcome.ts';

/** `qcow2:<sha256>` of one file of an image; undefined if no digest is known. Another build has another one. */
export function checksumOf({ files }: Pick<Image, 'files'>): string | undefined {
  return files
    .flatMap(({ format, checksums }) => (checksums === undefined ? [] : [`${format}:${checksums.sha256}`]))
    .at(0);
}

/**
 * Refuses to work with an image that is not the one that is meant, and deletes it: after a partition another builder
 * has built under the same image-id, and its copy is on record.
 *
 * @param meant as {@link checksumOf} reported it
 * @throws OtherCopyError
 */
export async function refuseOtherCopy(
  repository: ImageRepository,
  imageId: string,
  meant: string,
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<void> {
  const [format, sha256] = meant.split(':');
  const file = repository.get(imageId)?.files.find((each) => each.format === format);
  if (file === undefined) return; // made in other formats: it cannot be told
  const found = file.checksums ?? (await checksumsOf(file.path, { signal }));
  if (found.sha256 === sha256) return;
  logger.warn(`image ${imageId} is not the one on record, which another builder made; it is deleted here`);
  await repository.delete(imageId);
  await repository.forgetDelete(imageId);
  throw new OtherCopyError(
    `the copy of image ${imageId} at this builder had other bytes than those on record and was deleted: ${format} ${found.sha256}, not ${sha256}`,
  );
}
