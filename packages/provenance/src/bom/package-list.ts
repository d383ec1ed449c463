import { parseJson, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { Package } from '../types.ts';
import { type Distribution, type InstalledPackage, withPackageUrls } from './package-url.ts';

/** Packages in a list. */
export interface ListedPackages {
  readonly packages: readonly Package[];
  /** Number of entries that were skipped because they have no usable name or version. */
  readonly skipped: number;
}

/** Maximum size of a package list or a bill of materials, in bytes. JSON of this size takes up to 250 MB of memory. */
export const MAX_PACKAGE_LIST: number = 8 * 2 ** 20;

/** Maximum number of packages in a list, which is more than any distribution installs. */
export const MAX_PACKAGES = 10_000;

/** Types of packages by their names in mkosi and in our own lists. */
const TYPES: ReadonlyMap<string, Package['type']> = new Map([
  ['deb', 'deb'],
  ['rpm', 'rpm'],
  ['apk', 'apk'],
  ['pkg', 'alpm'],
]);

/** Type of the entry that names the distribution. */
const OS = 'os';

/** Keys that rpm keeps among its packages. */
const PUBLIC_KEY = 'gpg-pubkey';

/** The parts of CycloneDX, SPDX and mkosi documents that describe packages. */
const DOCUMENT = new JsonReader({
  type: 'object',
  properties: {
    bomFormat: TEXT,
    components: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: TEXT,
          version: TEXT,
          purl: TEXT,
          licenses: {
            type: 'array',
            items: {
              type: 'object',
              properties: {
                expression: TEXT,
                license: { type: 'object', properties: { id: TEXT, name: TEXT } },
              },
            },
          },
        },
      },
    },
    spdxVersion: TEXT,
    manifest_version: { type: 'integer' },
    config: { type: 'object', properties: { distribution: TEXT, release: TEXT } },
    packages: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: TEXT,
          // of SPDX
          versionInfo: TEXT,
          licenseDeclared: TEXT,
          externalRefs: {
            type: 'array',
            items: { type: 'object', properties: { referenceType: TEXT, referenceLocator: TEXT } },
          },
          // of mkosi
          type: TEXT,
          version: TEXT,
          architecture: TEXT,
        },
      },
    },
  },
});

/**
 * Parses the packages of a distribution in a list: JSON of CycloneDX, SPDX or mkosi, or lines of text. A line has a
 * type, a name, a version, and optionally an architecture and a license, separated by tabs; the two columns of
 * `dpkg-query --show` are also supported. The line `os`, an id and a version name the distribution.
 *
 * @throws Error with the reason, which quotes nothing of the text
 */
export async function parsePackageList(text: string): Promise<ListedPackages> {
  if (!/^\s*\{/.test(text)) return await withUrls(readLines(text));
  const document = DOCUMENT.check(parseJson(text));
  const { components = [], packages = [], config: { distribution, release } = {} } = document;
  if (document.bomFormat === 'CycloneDX') {
    return await withoutUrls(
      components.map(({ licenses: [license] = [], ...one }) => ({
        ...one,
        license: license?.expression ?? license?.license?.id ?? license?.license?.name,
      })),
    );
  }
  if (document.spdxVersion !== undefined) {
    return await withoutUrls(
      packages.map(({ name, versionInfo: version, licenseDeclared: license, externalRefs = [] }) => {
        const purl = externalRefs.find(({ referenceType }) => referenceType === 'purl')?.referenceLocator;
        return { name, version, purl, license: license === 'NOASSERTION' ? undefined : license };
      }),
    );
  }
  if (document.manifest_version !== undefined) {
    return await withUrls([{ type: OS, name: distribution, version: release }, ...packages]);
  }
  throw new Error('it is JSON of an unknown kind; use CycloneDX, SPDX or a manifest of mkosi');
}

type Fields = { readonly [Key in keyof Package]?: string | undefined };

function* readLines(text: string): Generator<Fields> {
  for (const [line] of text.matchAll(/[^\r\n]+/g)) {
    const [type, name, version, architecture, license] = line.split('\t', 5);
    if (type === OS || version !== undefined) yield { type, name, version, architecture, license };
    else {
      // "libc6:i386" for a package of a foreign architecture, and for a package with several architectures
      const [, debian, foreign] = /^([^:]*)(?::(.*))?$/.exec(type ?? '') ?? [];
      yield { type: 'deb', name: debian, version: name, architecture: foreign };
    }
  }
}

/** Packages without package URLs. */
async function withUrls(entries: Iterable<Fields>): Promise<ListedPackages> {
  let distribution: Distribution = {};
  let skipped = 0;
  const installed: InstalledPackage[] = [];
  for (const { type = '', name, version, ...optional } of entries) {
    const known = TYPES.get(type);
    if (type === OS) distribution = { id: plain(name), versionId: plain(version) };
    else if (name === PUBLIC_KEY) continue;
    else if (known === undefined || !isWord(name) || !isWord(version)) skipped += 1;
    else installed.push({ type: known, name, version, ...usable(optional) });
    checkNumber(installed);
  }
  return { packages: await withPackageUrls(installed, distribution), skipped };
}

/** Matches package URLs of a distribution's packages. */
const OF_A_DISTRIBUTION = /^pkg:(?:deb|rpm|apk|alpm)\//;

/** Reads packages with package URLs. Other components, such as npm packages or files, are skipped. */
async function withoutUrls(entries: readonly Fields[]): Promise<ListedPackages> {
  const { PackageURL } = await import('packageurl-js');
  let skipped = 0;
  const packages: Package[] = [];
  for (const { name, version, purl = '', license } of entries) {
    if (!OF_A_DISTRIBUTION.test(purl)) continue;
    const url = parsed(() => PackageURL.fromString(purl));
    const found = version ?? url?.version;
    if (url === undefined || !isWord(name) || !isWord(found) || !/^[^\s\p{C}]{1,500}$/u.test(purl))
      skipped += 1;
    else {
      const optional = usable({ architecture: url.qualifiers?.arch, license });
      packages.push({ name, version: found, type: url.type as Package['type'], purl, ...optional });
    }
    checkNumber(packages);
  }
  return { packages, skipped };
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

/** Returns an id or a version of a distribution; undefined if it is not valid. */
function plain(text = ''): string | undefined {
  return /^[\w.+-]{1,100}$/.test(text) ? text : undefined;
}

function checkNumber(packages: readonly unknown[]): void {
  if (packages.length > MAX_PACKAGES) throw new Error(`it lists more than ${MAX_PACKAGES} packages`);
}

/**
 * Returns whether a text is a usable name or version: not empty, not long, without white space and control characters.
 */
function isWord(text: string | undefined): text is string {
  return text !== undefined && /^[^\s\p{C}]{1,200}$/u.test(text);
}

/** Returns optional facts, without unusable ones, such as rpm's `(none)`. */
function usable({ architecture, license }: Fields): Pick<Package, 'architecture' | 'license'> {
  return {
    ...(isWord(architecture) && architecture !== '(none)' && { architecture }),
    ...(license !== undefined && /^[^\p{C}]{1,200}$/u.test(license) && { license }),
  };
}
