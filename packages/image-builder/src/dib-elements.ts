import { glob, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findProgram } from './process/find-program.ts';
import { shellWords } from './shell-words.ts';

/** Directory of the elements that come with this package. */
export const OWN_ELEMENTS: string = join(import.meta.dirname, '../elements');

/** Element that leaves the list of packages next to the image. */
export const PACKAGE_LIST = 'package-list';

/** Shell script that prints the packages of the system that it runs on. */
export const LIST_PACKAGES: string = join(OWN_ELEMENTS, PACKAGE_LIST, 'list-packages');

/**
 * Names of the elements in a disk image.
 *
 * @throws ImageError `invalid-configuration` for a quote that is not closed
 */
export function elementNames(elements: string | readonly string[] | null = []): readonly string[] {
  return typeof elements === 'string' ? shellWords(elements, 'the list of elements') : (elements ?? []);
}

/** Adds the elements of this package to the end of an `ELEMENTS_PATH` if a disk image names one of them. */
export async function withOwnElements(elementsPath = '', names: readonly string[]): Promise<string> {
  const own = await readdir(OWN_ELEMENTS);
  const isUsed = names.some((name) => own.includes(name));
  return [elementsPath, isUsed ? OWN_ELEMENTS : ''].filter(Boolean).join(':');
}

/** Directories of the elements that come with diskimage-builder, beside its command. */
export async function elementsOfDib(command: string): Promise<readonly string[]> {
  const found = findProgram(command, process.env.PATH);
  if (!('path' in found)) return [];
  const prefix = dirname(dirname(await realpath(found.path)));
  const places: string[] = [];
  for await (const place of glob(`${prefix}/lib*/python3*/*-packages/diskimage_builder/elements`)) {
    places.push(place);
  }
  return places;
}
