import type { Package } from '../types.ts';

/** Facts that a package manager has about an installed package. */
export type InstalledPackage = Omit<Package, 'purl'>;

/** Distribution of an image, from `/etc/os-release`. */
export interface Distribution {
  /** `debian`, `fedora`, `alpine`. */
  readonly id?: string | undefined;
  readonly versionId?: string | undefined;
}

/** Default namespace of a package URL: the distribution for which the type of package was made. */
const DEFAULT_NAMESPACE = { deb: 'debian', rpm: 'redhat', apk: 'alpine', alpm: 'arch' } as const;

/** Adds a package URL to each package. https://github.com/package-url/purl-spec */
export async function withPackageUrls(
  packages: readonly InstalledPackage[],
  distribution: Distribution,
): Promise<Package[]> {
  // Imported on demand, like all libraries in this directory, because most commands need no bill of materials.
  const { PackageURL } = await import('packageurl-js');
  const { id, versionId } = distribution;
  const distro = [id, versionId].filter((part) => part !== undefined).join('-');
  const [first] = packages;
  const namespace = id ?? (first && guessNamespace(first.type, packages));
  return packages.map((one) => {
    const { epoch, version } = one.type === 'rpm' ? splitEpoch(one.version) : { version: one.version };
    const qualifiers = {
      ...(one.architecture !== undefined && { arch: one.architecture }),
      ...(distro !== '' && { distro }),
      ...(epoch !== undefined && { epoch }),
    };
    const url = new PackageURL(one.type, namespace, one.name, version, qualifiers, undefined);
    return { ...one, purl: url.toString() };
  });
}

/** Ubuntu's changes to Debian's packages have versions such as `1.2-3ubuntu1`. */
const UBUNTU_VERSION = /ubuntu/;

function guessNamespace(type: Package['type'], packages: readonly InstalledPackage[]): string {
  const isUbuntu = type === 'deb' && packages.some(({ version }) => UBUNTU_VERSION.test(version));
  return isUbuntu ? 'ubuntu' : DEFAULT_NAMESPACE[type];
}

/** Splits off the epoch of `1:2.3-4`, which is a qualifier in package URLs of rpm. */
function splitEpoch(version: string): { readonly epoch?: string; readonly version: string } {
  const [, epoch, rest] = /^(\d+):(.*)$/s.exec(version) ?? [];
  return epoch === undefined || rest === undefined ? { version } : { epoch, version: rest };
}
