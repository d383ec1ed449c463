import type { Package, PackageChanges } from '../types.ts';

/**
 * Returns the differences between the packages of two images, in the order of names. A package has changed if it has
 * one version in each image. If an image has several versions of it, such as kernels, each version is added or removed.
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

/** Compares the packages with one name. Several packages are compared separately for each architecture. */
function compareVersions(
  before: readonly Package[],
  after: readonly Package[],
  changes: { added: Package[]; removed: Package[]; changed: Change[] },
): void {
  const [removed, added] = [without(before, after), without(after, before)];
  const architectures = new Set([...before, ...after].map(({ architecture }) => architecture));
  if (before.length === 1 && after.length === 1) {
    const [one, other] = [removed[0], added[0]];
    if (one !== undefined && other !== undefined) changes.changed.push({ before: one, after: other });
  } else if (architectures.size === 1) {
    changes.removed.push(...removed);
    changes.added.push(...added);
  } else {
    for (const architecture of architectures) {
      const [old, fresh] = [before, after].map((all) =>
        all.filter((one) => one.architecture === architecture),
      );
      compareVersions(old ?? [], fresh ?? [], changes);
    }
  }
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
  const names = Map.groupBy(packages, ({ type, name }) => `${type}\0${name}`);
  for (const [name, versions] of names) {
    if (versions.length > 1) {
      names.set(name, [...new Map(versions.map((one) => [keyOf(one), one])).values()]);
    }
  }
  return names;
}

function textOrder(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
