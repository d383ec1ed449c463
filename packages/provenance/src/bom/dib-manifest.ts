import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { JsonReader, unlessMissing } from '@nodepool-builder/image-builder/module-kit';
import { FileSource, readWhole } from './byte-source.ts';
import type { InstalledPackage } from './package-url.ts';

/** Begin of the name of the file that diskimage-builder's element `dpkg` writes; the name of the image follows. */
const DPKG_MANIFEST = 'dib-manifest-dpkg-';

const READER = new JsonReader({
  type: 'object',
  required: ['packages'],
  properties: {
    packages: {
      type: 'array',
      items: {
        type: 'object',
        required: ['package', 'arch', 'version', 'status'],
        properties: {
          package: { type: 'string' },
          arch: { type: 'string' },
          version: { type: 'string' },
          status: { type: 'string' },
        },
      },
    },
  },
});

/** Second letter of `dpkg -l` for packages of which no program is left. */
const NOT_INSTALLED = /^.[nc]/;

/** Upper bound of a manifest in bytes: 100,000 packages. */
const LARGEST_MANIFEST = 16 * 2 ** 20;

/**
 * Packages in a manifest that diskimage-builder copied to `<image-id>.d/dib-manifests`. Its element `dpkg`, on which
 * all elements of Debian and Ubuntu depend, writes one at the end of the build; no element does for rpm or apk.
 *
 * @throws Error for a damaged manifest
 */
export async function readDibManifest(
  directory: string,
  signal: AbortSignal,
): Promise<{ packages: readonly InstalledPackage[]; source: string } | undefined> {
  const names = (await unlessMissing(readdir(directory))) ?? [];
  const name = names.toSorted().find((candidate) => candidate.startsWith(DPKG_MANIFEST));
  if (name === undefined) return undefined;
  const { packages } = READER.parse(await readText(join(directory, name), signal));
  const installed = packages.filter(({ status }) => !NOT_INSTALLED.test(status));
  return {
    // "binary:Package" is "libc6:i386" for a package of a foreign architecture, and for one of several.
    packages: installed.map(({ package: fullName, arch, version }) => ({
      name: fullName.replace(/:[^:]*$/, ''),
      version,
      architecture: arch,
      type: 'deb',
    })),
    source: `diskimage-builder's manifest ${name}`,
  };
}

async function readText(path: string, signal: AbortSignal): Promise<string> {
  const file = await FileSource.open(path, signal);
  try {
    return (await readWhole(file, LARGEST_MANIFEST, 'the list of packages')).toString();
  } finally {
    await file.close();
  }
}
