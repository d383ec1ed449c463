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

/** Compares all packages of one name: first those of each architecture, then a package whose architecture changed. */
function compareVersions(
  before: readonly Package[],
  after: readonly Package[],
  changes: { added: Package[]; removed: Package[]; changed: Change[] },
): void {
  const [old, fresh] = [before[0], after[0]];
  if (old !== undefined && fresh !== undefined && before.length === 1 && after.length === 1) {
    if (keyOf(old) !== keyOf(fresh)) changes.changed.push({ before: old, after: fresh });
    return;
  }
  const removed = without(before, after);
  const added = without(after, before);
  const [loneBefore, loneAfter] = [onesOfArchitecture(before), onesOfArchitecture(after)];
  for (const one of removed) {
    const next = loneBefore.get(one.architecture) && loneAfter.get(one.architecture);
    if (next === undefined) changes.removed.push(one);
    else changes.changed.push({ before: one, after: next });
  }
  for (const one of added) {
    const isChange = loneBefore.get(one.architecture) && loneAfter.get(one.architecture);
    if (isChange === undefined) changes.added.push(one);
  }
}

/** Packages that are the only one of their architecture, by architecture. */
function onesOfArchitecture(packages: readonly Package[]): Map<string | undefined, Package | undefined> {
  const found = new Map<string | undefined, Package | undefined>();
  for (const one of packages) {
    found.set(one.architecture, found.has(one.architecture) ? undefined : one);
  }
  return found;
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
