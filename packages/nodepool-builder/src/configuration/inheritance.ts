import type { Diagnostic } from '@nodepool-builder/image-builder';
import { wordsOf } from '../yaml/values.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import type { DiskImageSource } from './disk-image-schema.ts';
import { wordKeys } from './disk-images.ts';
import type { Modules } from './modules.ts';
import type { ConfigurationSource } from './schema.ts';

type ByName = ReadonlyMap<string, DiskImageSource>;

/** Indexes entries by name. The last of several entries with one name counts. */
function byName(diskimages: readonly DiskImageSource[]): ByName {
  return new Map(diskimages.map((diskimage) => [diskimage.name, diskimage]));
}

/** Reports missing parents, and disk images that are their own ancestors. */
export function* inheritanceDiagnostics(diskimages: readonly DiskImageSource[]): Iterable<Diagnostic> {
  const all = byName(diskimages);
  for (const [index, { name, parent }] of diskimages.entries()) {
    if (!parent) continue;
    const pointer = `/diskimages/${index}/parent`;
    if (!all.has(parent)) {
      const reason = `"${parent}" is not among diskimages`;
      yield { pointer, reason, remedy: 'name another disk image, or remove it' };
    }
    const line = [name];
    let next: string | null | undefined = parent;
    while (next && !line.includes(next)) {
      line.push(next);
      next = all.get(next)?.parent;
    }
    if (next !== name) continue; // a cycle among ancestors is reported there
    const reason = `leads back to the disk image itself: ${[...line, name].join(', ')}`;
    yield { pointer, reason, remedy: 'remove one of these parents' };
  }
}

/**
 * Resolves `parent`. As in nodepool, elements and other words come after the parent's, `env-vars` are added to the
 * parent's, and any other value replaces the parent's unless it is empty or false. An abstract entry keeps only its
 * name, because it is never built.
 *
 * @param source without {@link inheritanceDiagnostics}
 */
export function withInheritance(source: ConfigurationSource, modules: Modules): ConfigurationSource {
  const diskimages = source.diskimages ?? [];
  const all = byName(diskimages);
  const words = wordKeys(modules);
  return {
    ...source,
    diskimages: diskimages.map((diskimage) =>
      diskimage.abstract ? { name: diskimage.name, abstract: true } : inherit(diskimage, all, words),
    ),
  };
}

function inherit(diskimage: DiskImageSource, all: ByName, words: readonly string[]): DiskImageSource {
  const parent = diskimage.parent ? all.get(diskimage.parent) : undefined;
  if (parent === undefined) return diskimage;
  const { abstract: _, 'rebuild-age': age, 'rebuild-cron': cron, ...inherited } = inherit(parent, all, words);
  const values = Object.entries(diskimage).filter(([, value]) => value);
  const hasTime = diskimage['rebuild-age'] !== undefined || diskimage['rebuild-cron'] !== undefined;
  return {
    ...inherited,
    // An own time replaces both of the parent's.
    ...(!hasTime && age !== undefined && { 'rebuild-age': age }),
    ...(!hasTime && cron !== undefined && { 'rebuild-cron': cron }),
    ...Object.fromEntries(values),
    name: diskimage.name,
    ...Object.fromEntries(
      words.map((key) => [key, [...inheritableWords(inherited[key]), ...inheritableWords(diskimage[key])]]),
    ),
    'env-vars': { ...variablesOf(inherited), ...variablesOf(diskimage) },
  };
}

function variablesOf({ 'env-vars': variables }: DiskImageSource): Record<string, unknown> {
  return isMapping(variables) ? variables : {};
}

/** Splits a string into words. A string with an open quote stays whole, so that its builds fail. */
function inheritableWords(value: unknown): readonly string[] {
  return wordsOf(value) ?? [value as string];
}

/**
 * Returns the JSON pointer at which a word of {@link withInheritance} is written, in the disk image or in one that it
 * inherits from.
 *
 * @param pointer any other pointer is returned unchanged
 */
export function writtenPointer(source: ConfigurationSource, pointer: string): string {
  const diskimages = source.diskimages ?? [];
  const [, index, key = '', word] = /^\/diskimages\/(\d+)\/([^/]+)\/(\d+)$/.exec(pointer) ?? [];
  const all = byName(diskimages);
  const line: DiskImageSource[] = [];
  for (let next = diskimages[Number(index)]; next !== undefined; next = all.get(next.parent ?? ''))
    line.unshift(next);
  let position = Number(word);
  for (const entry of line) {
    const { length } = inheritableWords(entry[key]);
    const place = `/diskimages/${diskimages.indexOf(entry)}/${key}`;
    if (position < length) return Array.isArray(entry[key]) ? `${place}/${position}` : place;
    position -= length;
  }
  return pointer;
}
