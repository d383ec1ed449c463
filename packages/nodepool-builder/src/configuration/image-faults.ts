import { ImageError } from '@nodepool-builder/image-builder';
import { imageIdFault, shellWords, variableFault } from '@nodepool-builder/image-builder/module-kit';
import type { Modules } from '../modules.ts';
import { keysWithFormat } from './disk-images.ts';
import type { Fault } from './fault.ts';
import { type Finding, toFault } from './finding.ts';
import { isFunctionSubject } from './reference-faults.ts';
import { isMapping } from './scalar.ts';
import type { ConfigurationSource, DiskImageSource } from './source.ts';
import { escapePointer, type YamlDocument } from './yaml-document.ts';

/** The longest end of an image-id that the manager makes. */
const ID_END = '-0000000001-aaaaaaaa';

/**
 * Reports settings that the schema accepts but jobs cannot use: names that cannot be part of a file name, elements
 * with an open quote, and `env-vars` that are not strings.
 *
 * @param source before inheritance, so that each fault is found where it is written
 */
export function imageFaults(
  document: YamlDocument,
  source: ConfigurationSource,
  modules: Modules,
): readonly Fault[] {
  const words = keysWithFormat(modules, 'words');
  return (source.diskimages ?? [])
    .flatMap((diskimage, index) => diskImageFindings(diskimage, `/diskimages/${index}`, words))
    .map((finding) => toFault(document, finding));
}

function diskImageFindings(
  diskimage: DiskImageSource,
  pointer: string,
  words: readonly string[],
): readonly Finding[] {
  const { name, abstract = false } = diskimage;
  return [
    ...(abstract ? [] : nameFindings(name, `${pointer}/name`)),
    ...words.flatMap((key) => wordFindings(diskimage[key], `${pointer}/${key}`)),
    ...variableFindings(diskimage, `${pointer}/env-vars`),
  ];
}

/** A warning: the image-ids of the nodepool daemon are numbers, so that it can have any disk image built. */
export function nameFindings(name: string, pointer: string): readonly Finding[] {
  const fault = imageIdFault(`${name}${ID_END}`);
  if (fault === undefined || !isFunctionSubject(name)) return [];
  const reason = `leads to image-ids that builders refuse: each ${fault}`;
  return [{ pointer, severity: 'warning', reason, remedy: 'choose a plain name' }];
}

function wordFindings(value: unknown, pointer: string): readonly Finding[] {
  if (typeof value !== 'string') return [];
  try {
    shellWords(value, 'the words');
    return [];
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    const reason = 'has a quote or backslash without its counterpart: builds fail';
    return [{ pointer, severity: 'job-error', reason, remedy: 'close or remove it' }];
  }
}

function variableFindings({ 'env-vars': variables }: DiskImageSource, pointer: string): readonly Finding[] {
  if (variables === undefined || variables === null) return [];
  if (!isMapping(variables)) {
    const remedy = 'write "NAME: value" pairs, indented below it, or remove it';
    return [{ pointer, severity: 'warning', reason: 'is not a mapping: it is ignored', remedy }];
  }
  return Object.entries(variables).flatMap(([name, value]): readonly Finding[] => {
    const [fault, remedy] = variableFault(name, value)?.split('; ') ?? [];
    if (fault === undefined || remedy === undefined) return [];
    const place = `${pointer}/${escapePointer(name)}`;
    return [{ pointer: place, severity: 'job-error', reason: `${fault}: builds fail`, remedy }];
  });
}
