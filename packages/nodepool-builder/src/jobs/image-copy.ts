import { checksumsOf, type Image, type ImageRepository, type Logger } from '@nodepool-builder/image-builder';
import { OtherCopyError } from './job-outcome.ts';

/** `qcow2:<sha256>` of one file of an image; undefined if no digest is known. It differs between builds. */
export function checksumOf({ files }: Pick<Image, 'files'>): string | undefined {
  return files
    .flatMap(({ format, checksums }) => (checksums === undefined ? [] : [`${format}:${checksums.sha256}`]))
    .at(0);
}

/**
 * Refuses and deletes an image whose bytes differ from those on record: after a partition another builder
 * may have built under the same image-id.
 *
 * @param meant the checksum on record, from {@link checksumOf}
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
  if (file === undefined) return; // no file of that format to compare
  const found = file.checksums ?? (await checksumsOf(file.path, { signal }));
  if (found.sha256 === sha256) return;
  logger.warn(`image ${imageId} is not the one on record, which another builder made; it is deleted here`);
  await repository.delete(imageId);
  await repository.forgetDelete(imageId);
  throw new OtherCopyError(
    `the copy of image ${imageId} at this builder had other bytes than those on record and was deleted: ${format} ${found.sha256}, not ${sha256}`,
  );
}
