import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Logger } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import {
  billOfMaterialsPath,
  PACKAGE,
  type Package,
  readBillOfMaterials,
} from '@nodepool-builder/provenance';
import { errorLine } from '../../terms/command-error.ts';

/** Maximum size of a list in gzip and base64, in bytes. The list of an image with 2,000 packages has about 60 KiB. */
const MAX_SIZE = 512 * 1024;

/** Maximum size of a list in JSON, in bytes. It fits 10,000 packages. Parsing it takes less than 50 ms. */
const MAX_JSON_SIZE = 4 * 2 ** 20;

const LIST = new JsonReader({ type: 'array', maxItems: 10_000, items: PACKAGE });

/** Packs a package list, without licenses, for the result of a job. Returns undefined if it is too large. */
export async function packPackages(packages: readonly Package[]): Promise<string | undefined> {
  const list = packages.map(({ license: _, ...one }) => one);
  const json = JSON.stringify(list);
  if (Buffer.byteLength(json) > MAX_JSON_SIZE) return undefined;
  const text = (await promisify(gzip)(json)).toString('base64');
  return text.length > MAX_SIZE ? undefined : text;
}

/**
 * Returns the packed package list of an image, from its bill of materials; undefined if it has none. A failure is only
 * logged, because the image is good without the list.
 */
export async function packageListOf(
  imagesDirectory: string,
  imageId: string,
  logger: Pick<Logger, 'warn'>,
): Promise<string | undefined> {
  const path = billOfMaterialsPath(imagesDirectory, imageId);
  if (!existsSync(path)) return undefined;
  try {
    const list = await packPackages(await readBillOfMaterials(path));
    if (list === undefined)
      logger.warn(`image ${imageId}: the package list is too large to send to the manager`);
    return list;
  } catch (error) {
    logger.warn(`image ${imageId}: cannot send the package list to the manager: ${errorLine(error)}`);
    return undefined;
  }
}

/** @throws Error if the list is damaged or too large */
export async function unpackPackages(text: string): Promise<readonly Package[]> {
  const json = await promisify(gunzip)(Buffer.from(text, 'base64'), { maxOutputLength: MAX_JSON_SIZE });
  return LIST.parse(json.toString('utf8'));
}
