import { lstat, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { attestationDirectory, conversionDocument, type ImageAttester } from '../attestation.ts';
import type { ImageFormat } from '../formats.ts';
import { readManifest } from '../manifest.ts';
import { unlessMissing } from '../system-error.ts';
import type { Layout } from './layout.ts';

/**
 * Attests a conversion, unless its document exists or the digest of the source is unknown. The checksums of the file
 * must be on record.
 */
export async function attestConversion(
  attester: ImageAttester,
  layout: Layout,
  imageId: string,
  format: ImageFormat,
  signal: AbortSignal,
): Promise<void> {
  const manifest = await readManifest(layout.manifest(imageId), imageId);
  const file = manifest?.files.find((one) => one.format === format);
  if (file?.from === undefined) return;
  if ((await unlessMissing(lstat(documentOf(layout, imageId, format)))) !== undefined) return;
  const { root: directory } = layout;
  const conversion = { imageId, imageName: manifest?.['image-name'], source: file.from, file, directory };
  await attester.attestConversion(conversion, { signal });
}

/** Removes the document about an earlier file of this format, which has since been removed. */
export async function forgetConversion(layout: Layout, imageId: string, format: ImageFormat): Promise<void> {
  await rm(documentOf(layout, imageId, format), { force: true });
}

function documentOf({ root }: Layout, imageId: string, format: ImageFormat): string {
  return join(attestationDirectory(root, imageId), conversionDocument(format));
}
