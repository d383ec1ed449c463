import { ImageError } from '@nodepool-builder/image-builder';
import { shellWords } from '@nodepool-builder/image-builder/module-kit';
import type { Modules } from '../modules.ts';
import { keysWithFormat } from './disk-images.ts';
import type { Fault } from './fault.ts';
import { type Finding, toFault } from './finding.ts';
import { isMapping } from './scalar.ts';
import type { ConfigurationSource, DiskImageSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

type ByName = ReadonlyMap<string, DiskImageSource>;

/** The later of two entries with one name counts. */
function byName(diskimages: readonly DiskImageSource[]): ByName {
  return new Map(diskimages.map((diskimage) => [diskimage.name, diskimage]));
}

/** Reports missing parents, and disk images that are their own ancestors. */
export function inheritanceFaults(document: YamlDocument, source: ConfigurationSource): readonly Fault[] {
  const diskimages = source.diskimages ?? [];
  const all = byName(diskimages);
  return diskimages.flatMap((diskimage, index) => {
    const finding = parentFinding(diskimage, all, `/diskimages/${index}/parent`);
    return finding === undefined ? [] : [toFault(document, finding)];
  });
}

function parentFinding({ name, parent }: DiskImageSource, all: ByName, pointer: string): Finding | undefined {
  if (!parent) return undefined;
  if (!all.has(parent)) {
    const remedy = 'name another disk image, or remove it';
    return { pointer, reason: `"${parent}" is not among diskimages`, remedy };
  }
  const line = [name];
  let next: string | null | undefined = parent;
  while (next && !line.includes(next)) {
    line.push(next);
    next = all.get(next)?.parent;
  }
  if (next !== name) return undefined; // a cycle among ancestors is reported there
  const reason = `leads back to the disk image itself: ${[...line, name].join(', ')}`;
  return { pointer, reason, remedy: 'remove one of these parents' };
}

/**
 * Resolves `parent`: each disk image gets the settings that it inherits. As in nodepool, elements and other words come
 * after those of the parent, `env-vars` are added to the parent's, and any other value takes the place of the parent's
 * unless it is empty or false. An abstract entry keeps only its name: it is never built.
 *
 * @param source without an {@link inheritanceFaults}
 */
export function withInheritance(source: ConfigurationSource, modules: Modules): ConfigurationSource {
  const diskimages = source.diskimages ?? [];
  const all = byName(diskimages);
  const words = keysWithFormat(modules, 'words');
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
  const { abstract: _, ...inherited } = inherit(parent, all, words);
  const values = Object.entries(diskimage).filter(([, value]) => value);
  return {
    ...(hasRebuildTime(diskimage) ? withoutRebuildTime(inherited) : inherited),
    ...(Object.fromEntries(values) as Partial<DiskImageSource>),
    name: diskimage.name,
    ...Object.fromEntries(
      words.map((key) => [key, [...wordsOf(inherited[key]), ...wordsOf(diskimage[key])]]),
    ),
    'env-vars': { ...variablesOf(inherited), ...variablesOf(diskimage) },
  };
}

/** `rebuild-age` and `rebuild-cron` replace each other. */
function hasRebuildTime({ 'rebuild-age': age, 'rebuild-cron': cron }: DiskImageSource): boolean {
  return age !== undefined || cron !== undefined;
}

function withoutRebuildTime(diskimage: DiskImageSource): DiskImageSource {
  const { 'rebuild-age': _, 'rebuild-cron': __, ...others } = diskimage;
  return others;
}

function variablesOf({ 'env-vars': variables }: DiskImageSource): Record<string, unknown> {
  return isMapping(variables) ? variables : {};
}

/** Splits words; a string with an open quote is kept whole, so that its builds are refused. */
function wordsOf(value: unknown): readonly string[] {
  if (typeof value !== 'string') return Array.isArray(value) ? value : [];
  try {
    return shellWords(value, 'the words');
  } catch (error) {
    if (error instanceof ImageError) return [value];
    throw error;
  }
}
