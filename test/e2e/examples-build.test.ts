// Only in test:all: it builds a Debian image for each example.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { glob, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { startDebianProxy } from '../../scripts/debian-proxy.ts';
import { codeBlocks, ROOT, readPage } from '../docs/markdown.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { pathForDib } from '../fixtures/device-mapper.ts';

const run = promisify(execFile);

/** Not built here, because its elements need others in its directory. `npm run quickstart` builds it. */
const QUICKSTART = 'examples/quickstart/nodepool.yaml';

interface DiskImageEntry {
  readonly name: string;
  readonly builder?: string;
  readonly elements?: readonly string[];
  readonly release?: string;
  readonly 'env-vars'?: object;
}

/** A disk image in a configuration file. */
interface Site extends DiskImageEntry {
  readonly file: string;
  /** Path of the file, as readers know it. */
  readonly shown: string;
}

const directory = await mkdtemp(join(tmpdir(), 'examples-build-'));
after(() => rm(directory, { recursive: true }));
const proxy = await startDebianProxy();
after(() => proxy[Symbol.asyncDispose]());
const env = { ...process.env, PATH: await pathForDib(), http_proxy: proxy.url };
await run('modprobe', ['vfat']).catch(() => {}); // it may be built in
const hasVfat = /\bvfat$/m.test(await readFile('/proc/filesystems', 'utf8'));

/** Selects the elements that this kernel can build: without vfat it cannot mount an EFI system partition. */
function buildable({ elements = [] }: DiskImageEntry): readonly string[] {
  return elements.filter((element) => hasVfat || element !== 'block-device-efi');
}

/** Configurations that the project shows to users, by name. */
async function configurations(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for await (const name of glob('examples/**/nodepool.yaml', { cwd: ROOT })) {
    if (name !== QUICKSTART) files.set(name, join(ROOT, name));
  }
  const [readme = ''] = codeBlocks(await readPage('README.md'), 'yaml');
  const [, walkthrough = ''] = codeBlocks(await readPage('docs/openstack-walkthrough.md'), 'yaml');
  for (const [name, text] of [
    ['README.md', readme],
    ['docs/openstack-walkthrough.md', walkthrough],
  ] as const) {
    const file = join(directory, name, 'nodepool.yaml');
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    files.set(name, file);
  }
  const initial = join(directory, 'nodepool.yaml');
  await run(...builderCommand('init', '--output', initial));
  return files.set('nodepool-builder init', initial);
}

/** Groups the diskimage-builder images in these configurations by equality. */
async function sitesByBuild(): Promise<ReadonlyMap<string, readonly Site[]>> {
  const sites: Site[] = [];
  for (const [shown, file] of await configurations()) {
    const { diskimages = [] } = load(await readFile(file, 'utf8')) as { diskimages?: DiskImageEntry[] };
    for (const entry of diskimages) sites.push({ ...entry, file, shown });
  }
  return Map.groupBy(
    sites.filter(({ builder = 'dib' }) => builder === 'dib'),
    (site) => {
      const { release, 'env-vars': variables = {} } = site;
      const words = Object.entries(variables).map((entry) => entry.join('='));
      return [release, 'with', ...buildable(site), ...words].join(' ');
    },
  );
}

describe('the disk images of examples, documents and init', { concurrency: true }, async () => {
  for (const [build, sites] of await sitesByBuild()) {
    const names = [...new Set(sites.map(({ shown }) => shown))].join(', ');
    it(`disk-image-create builds ${build} as shown in ${names}`, async () => {
      const unchanged = ({ elements = [], ...site }: Site) =>
        buildable({ elements, ...site }).length === elements.length;
      const { name, file, release = '' } = sites.find(unchanged) ?? assert.fail('no disk image can be built');
      const output = await mkdtemp(join(directory, 'output-'));
      const variables = { ...env, DIB_IMAGE_CACHE: join(output, 'cache') };
      const { stdout } = await run(...builderCommand('build', name, '-c', file, '--output', output), {
        env: variables,
      });
      const [image = ''] = stdout.split('\n');
      const read = await openRoot(image);
      assert.match(await read('/usr/lib/os-release'), new RegExp(`^VERSION_CODENAME=${release}$`, 'm'));
      assert.match(
        await read('/etc/apt/sources.list.d/security.list'),
        new RegExp(` ${release}-security main$`, 'm'),
      );
      assert.doesNotMatch(await read('/var/lib/dpkg/status'), /^Maintainer: debian-fixes$/m);
    });
  }
});

/** Opens the root file system of a partitioned disk. Returns a function that reads its files. */
async function openRoot(image: string): Promise<(path: string) => Promise<string>> {
  const raw = `${image}.disk`;
  await run('qemu-img', ['convert', '-O', 'raw', image, raw]);
  const { stdout } = await run('sfdisk', ['--json', raw]);
  const { partitiontable: table } = JSON.parse(stdout) as {
    partitiontable: { partitions: { start: number; size: number }[]; sectorsize: number };
  };
  const [root = assert.fail()] = table.partitions.toSorted((one, other) => other.size - one.size);
  const options = { maxBuffer: 2 ** 26 };
  return async (path) =>
    (await run('debugfs', ['-R', `cat ${path}`, `${raw}?offset=${root.start * table.sectorsize}`], options))
      .stdout;
}
