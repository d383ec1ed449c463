import type { Package, PackageChanges } from '../types.ts';

/**
 * Differences between the packages of two images, in the order of names. A package has changed if it has one version
 * in each image. If an image has several versions of it, such as kernels, each version is added or removed.
 */
export function comparePackages(before: readonly Package[], after: readonly Package[]): PackageChanges {
  const [inBefore, inAfter] = [before, after].map(byName);
  const changes = { added: [] as Package[], removed: [] as Package[], changed: [] as Change[] };
  for (const name of new Set([...(inBefore?.keys() ?? []), ...(inAfter?.keys() ?? [])])) {
    compareVersions(inBefore?.get(name) ?? [], inAfter?.get(name) ?? [], changes);
  }
  return {
    added: changes.added.toSorted(packageOrder),
    removed: changes.removed.toSorted(packageOrder),
    changed: changes.changed.toSorted(
      (a, b) => packageOrder(a.before, b.before) || packageOrder(a.after, b.after),
    ),
  };
}

/** Order of packages: by name, architecture, version and type, the same on every host. */
export function packageOrder(a: Package, b: Package): number {
  return (
    textOrder(a.name, b.name) ||
    textOrder(a.architecture ?? '', b.architecture ?? '') ||
    textOrder(a.version, b.version) ||
    textOrder(a.type, b.type)
  );
}

type Change = PackageChanges['changed'][number];

/** Compares all packages of one name: first those of each architecture, then a package whose architecture changed. */
function compareVersions(
  before: readonly Package[],
  after: readonly Package[],
  changes: { added: Package[]; removed: Package[]; changed: Change[] },
): void {
  let removed = without(before, after);
  let added = without(after, before);
  for (const old of removed) {
    const isSameArchitecture = (other: Package): boolean => other.architecture === old.architecture;
    const [fresh] = added.filter(isSameArchitecture);
    const hasOne = [before, after].every((packages) => packages.filter(isSameArchitecture).length === 1);
    if (fresh === undefined || !hasOne) continue;
    changes.changed.push({ before: old, after: fresh });
    removed = removed.filter((other) => other !== old);
    added = added.filter((other) => other !== fresh);
  }
  const [old, fresh] = [removed[0], added[0]];
  if (old !== undefined && fresh !== undefined && before.length === 1 && after.length === 1) {
    changes.changed.push({ before: old, after: fresh });
    return;
  }
  changes.removed.push(...removed);
  changes.added.push(...added);
}

function without(packages: readonly Package[], others: readonly Package[]): Package[] {
  const known = new Set(others.map(keyOf));
  return packages.filter((one) => !known.has(keyOf(one)));
}

function keyOf({ architecture = '', version }: Package): string {
  return `${architecture}\0${version}`;
}

/** Packages by type and name. A package that is listed twice counts once. */
function byName(packages: readonly Package[]): Map<string, Package[]> {
  const names = new Map<string, Map<string, Package>>();
  for (const one of packages) {
    const name = `${one.type}\0${one.name}`;
    const versions = names.get(name) ?? new Map<string, Package>();
    names.set(name, versions);
    if (!versions.has(keyOf(one))) versions.set(keyOf(one), one);
  }
  return new Map([...names].map(([name, versions]) => [name, [...versions.values()]]));
}

function textOrder(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
