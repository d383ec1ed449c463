import { createHash, randomBytes, randomInt } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, cloudsYaml } from '../fixtures/openstack/account.ts';

/** Sizes of images in bytes. */
const SMALLEST = 4 * 1024;
const LARGEST = 2 * 1024 * 1024;

/** A provider of the site, with its project. */
export interface SoakProvider {
  readonly name: string;
  readonly account: Account;
}

/** A builder's configuration and its images, which are in `images-dir` before it starts. */
export interface SoakSite {
  /** Path of `nodepool.yaml`. */
  readonly config: string;
  /** Path of `clouds.yaml`. */
  readonly clouds: string;
  readonly providers: readonly SoakProvider[];
  /** MD5 of each image, by image id. */
  readonly images: ReadonlyMap<string, string>;
  remove(): Promise<void>;
}

/** Creates a site with this number of images of random bytes, for the job server at `port`. */
export async function createSoakSite(
  port: number,
  imageCount: number,
  accounts: readonly Account[],
): Promise<SoakSite> {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-'));
  const [config, clouds, imagesDir] = ['nodepool.yaml', 'clouds.yaml', 'images'].map((name) =>
    join(directory, name),
  ) as [string, string, string];
  await mkdir(imagesDir);
  const providers = accounts.map((account, index) => ({ name: `cloud-${index + 1}`, account }));
  const images = new Map<string, string>();
  for (let number = 1; number <= imageCount; number++) {
    const id = String(number).padStart(4, '0');
    const content = randomBytes(randomInt(SMALLEST, LARGEST));
    images.set(id, createHash('md5').update(content).digest('hex'));
    await writeFile(join(imagesDir, `${id}.raw`), content);
  }
  const names = Object.fromEntries(providers.map(({ name, account }) => [name, account.cloud()]));
  await Promise.all([
    writeFile(clouds, cloudsYaml(names)),
    writeFile(config, configuration(port, providers)),
  ]);
  return {
    config,
    clouds,
    providers,
    images,
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

function configuration(port: number, providers: readonly SoakProvider[]): string {
  const entries = providers.map(
    ({ name }) => `
  - name: ${name}
    cloud: ${name}
    image-type: raw
    # Far quicker than a public cloud allows, and slow enough for kills to come between.
    rate: 0.05
    max-servers: 0
    images: [{name: soak, diskimage: soak, min-ram: 1}]`,
  );
  return `
images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${port}}]
diskimages: [{name: soak, elements: [base]}]
providers:${entries.join('')}
`;
}
