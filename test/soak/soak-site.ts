import { createHash, randomBytes, randomInt } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import type { SoakCloud, SoakImage } from './soak-cloud.ts';

/** Sizes of images in bytes. */
const MIN_SIZE = 4 * 1024;
const MAX_SIZE = 2 * 1024 * 1024;

/** A builder's configuration and its images, which are in `images-dir` before it starts. */
export interface SoakSite {
  /** Path of `nodepool.yaml`. */
  readonly config: string;
  /** Environment variables of the builder. */
  readonly environment: Readonly<Record<string, string>>;
  /** Images by image-id. */
  readonly images: ReadonlyMap<string, SoakImage>;
  remove(): Promise<void>;
}

/** Creates a site with this number of images of random bytes, for the job server at `port`. */
export async function createSoakSite(
  port: number,
  imageCount: number,
  clouds: readonly SoakCloud[],
): Promise<SoakSite> {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-'));
  const [config, imagesDir] = [join(directory, 'nodepool.yaml'), join(directory, 'images')];
  await mkdir(imagesDir);
  const images = new Map<string, SoakImage>();
  for (let number = 1; number <= imageCount; number++) {
    const id = String(number).padStart(4, '0');
    const content = randomBytes(randomInt(MIN_SIZE, MAX_SIZE));
    const path = join(imagesDir, `${id}.raw`);
    const md5 = createHash('md5').update(content).digest('hex');
    images.set(id, { id, path, size: content.length, md5 });
    await writeFile(path, content);
  }
  await writeFile(config, dump(configuration(port, clouds)));
  return {
    config,
    environment: Object.assign({}, ...clouds.map(({ environment = {} }) => environment)) as Record<
      string,
      string
    >,
    images,
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

function configuration(port: number, clouds: readonly SoakCloud[]): object {
  return {
    'images-dir': 'images',
    'gearman-servers': [{ host: '127.0.0.1', port }],
    diskimages: [{ name: 'soak', elements: ['base'] }],
    providers: clouds.map(({ entry }) => ({ ...entry, images: [{ name: 'soak', diskimage: 'soak' }] })),
  };
}
