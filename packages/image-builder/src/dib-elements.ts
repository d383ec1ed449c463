import { glob, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { DiskImage } from './disk-image.ts';
import { findProgram } from './process/find-program.ts';
import type { Environment } from './process/inherited-environment.ts';
import { shellWords } from './shell-words.ts';

/** Directory of the elements that come with this package. */
export const OWN_ELEMENTS: string = join(import.meta.dirname, '../elements');

/** Element that writes the package list next to the image. */
export const PACKAGE_LIST = 'package-list';

/** Shell script that prints the packages of the system that it runs on. */
export const LIST_PACKAGES: string = join(OWN_ELEMENTS, PACKAGE_LIST, 'list-packages');

export const ELEMENTS_PATH = 'ELEMENTS_PATH';

/** Element that disk-image-create always adds. */
const BASE = 'base';

/** Element that disk-image-create adds to `vm` if there is no other `block-device-…` element. */
const DEFAULT_BLOCK_DEVICE = process.arch === 'arm64' ? 'block-device-efi' : 'block-device-mbr';

/** Virtual element that one of the elements must provide. */
const OPERATING_SYSTEM = 'operating-system';

/**
 * Splits the elements of a disk image into their names.
 *
 * @throws ImageError `invalid-configuration` for a quote that is not closed
 */
export function elementNames(elements: string | readonly string[] | null = []): readonly string[] {
  return typeof elements === 'string' ? shellWords(elements, 'the list of elements') : (elements ?? []);
}

/** `ELEMENTS_PATH` of a disk image's builds, without the additions of {@link withOwnElements}. */
export function elementsPathOf(
  { envVars = {}, elementsDir }: Pick<DiskImage, 'envVars' | 'elementsDir'>,
  environment: Environment,
): string {
  const path = envVars[ELEMENTS_PATH] ?? elementsDir ?? environment[ELEMENTS_PATH];
  return typeof path === 'string' ? path : '';
}

/** Appends the elements of this package to an `ELEMENTS_PATH` if a disk image names one of them. */
export async function withOwnElements(elementsPath: string, names: readonly string[]): Promise<string> {
  const own = await readdir(OWN_ELEMENTS);
  const isUsed = names.some((name) => own.includes(name));
  return [elementsPath, isUsed ? OWN_ELEMENTS : ''].filter(Boolean).join(':');
}

/** Directories of the elements that come with diskimage-builder, next to its command. */
export async function elementsOfDib(
  command: string,
  searchPath: unknown = process.env.PATH,
): Promise<readonly string[]> {
  const found = findProgram(command, String(searchPath));
  if (!('path' in found)) return [];
  const prefix = dirname(dirname(await realpath(found.path)));
  const places: string[] = [];
  for await (const place of glob(`${prefix}/lib*/python3*/*-packages/diskimage_builder/elements`)) {
    places.push(place);
  }
  return places;
}

/** Directories in which builds of a disk image look up elements on this host, in order. */
export async function elementDirectories(
  named: readonly string[],
  diskimage: Pick<DiskImage, 'envVars' | 'elementsDir'>,
  command: string,
): Promise<{ readonly site: readonly string[]; readonly shipped: readonly string[] }> {
  const path = await withOwnElements(elementsPathOf(diskimage, process.env), named);
  return {
    site: path.split(':').filter(Boolean),
    shipped: await elementsOfDib(command, diskimage.envVars?.PATH),
  };
}

/** Elements that disk-image-create can find: their directories, without symbolic links, by name. */
export type Elements = ReadonlyMap<string, string>;

/**
 * Finds the elements in directories. As in disk-image-create, the first directory with a name counts, and a symbolic
 * link to an element stands for the name of its target. Directories that cannot be read are skipped.
 */
export async function findElements(directories: readonly string[]): Promise<Elements> {
  const elements = new Map<string, string>();
  for (const directory of directories.toReversed()) {
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    if (entries.length === 0) continue;
    const parent = await realpath(directory);
    for (const entry of entries) {
      const path = join(parent, entry.name);
      if (entry.isDirectory()) elements.set(entry.name, path);
      if (!entry.isSymbolicLink()) continue;
      const target = await realpath(path).catch(() => undefined);
      if (target !== undefined && (await isDirectory(target))) elements.set(basename(target), target);
    }
  }
  return elements;
}

export async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

/** Elements of a disk image with all their dependencies, and the reasons why disk-image-create rejects them. */
export interface ExpandedElements {
  readonly names: ReadonlySet<string>;
  /** Elements without a directory, with the element that depends on them; undefined for one of the disk image. */
  readonly missing: ReadonlyMap<string, string | undefined>;
  /** Elements that are listed but provided by another one, or provided twice, with the first provider. */
  readonly conflicts: ReadonlyMap<string, string>;
  readonly hasOperatingSystem: boolean;
}

/** Resolves `element-deps` and `element-provides` like disk-image-create. */
export async function expandElements(
  named: readonly string[],
  elements: Elements,
): Promise<ExpandedElements> {
  const added = named.includes('vm') && !named.some((name) => name.startsWith('block-device-'));
  const all = [BASE, ...named, ...(added ? [DEFAULT_BLOCK_DEVICE] : [])];
  const wanted = new Map<string, string | undefined>(all.map((name) => [name, undefined]));
  const missing = new Map<string, string | undefined>();
  const providers = new Map<string, string>();
  const conflicts = new Map<string, string>();
  // The map grows during the loop, so that all dependencies are found.
  for (const [name, dependent] of wanted) {
    if (providers.has(name)) continue;
    const directory = elements.get(name);
    if (directory === undefined) {
      missing.set(name, dependent);
      continue;
    }
    for (const provided of await readNames(directory, 'element-provides')) {
      const other = providers.get(provided);
      if (other === undefined) providers.set(provided, name);
      else conflicts.set(provided, other);
    }
    for (const dependency of await readNames(directory, 'element-deps')) {
      if (!wanted.has(dependency) && !providers.has(dependency)) wanted.set(dependency, name);
    }
  }
  for (const [provided, provider] of providers) {
    missing.delete(provided);
    if (named.includes(provided)) conflicts.set(provided, provider);
  }
  return {
    names: new Set([...wanted.keys()].filter((name) => !providers.has(name))),
    missing,
    conflicts,
    hasOperatingSystem: providers.has(OPERATING_SYSTEM),
  };
}

async function readNames(directory: string, file: string): Promise<readonly string[]> {
  const text = await readFile(join(directory, file), 'utf8').catch(() => '');
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}
