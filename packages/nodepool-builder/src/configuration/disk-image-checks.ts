import type { Diagnostic, ObjectSchema } from '@nodepool-builder/image-builder';
import { imageIdError, variableError } from '@nodepool-builder/image-builder/internal';
import { escapePointer } from '../yaml/diagnostic.ts';
import { wordsOf } from '../yaml/values.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import { below, isFunctionSubject, missingKeys, nameDiagnostics } from './checks.ts';
import { type DiskImageEntry, wordKeys } from './disk-images.ts';
import { DEFAULT_BUILDER, type Modules } from './modules.ts';
import type { ConfigurationParts } from './parts.ts';
import type { ConfigurationSource } from './schema.ts';
import { validationDiagnostics } from './validation.ts';

/** The longest suffix that the manager adds to a name to make an image-id. */
const ID_END = '-0000000001-aaaaaaaa';

/**
 * Reports settings that the schema accepts but jobs cannot use: names that are not valid in file names, elements with
 * an open quote, and `env-vars` that are not strings.
 *
 * @param source before inheritance, so that each error is reported where it is written
 */
export function* jobDiagnostics(source: ConfigurationSource, modules: Modules): Iterable<Diagnostic> {
  const words = wordKeys(modules);
  for (const [index, diskimage] of (source.diskimages ?? []).entries()) {
    const pointer = `/diskimages/${index}`;
    if (!diskimage.abstract) yield* imageIdDiagnostics(diskimage.name, `${pointer}/name`);
    for (const key of words) {
      if (wordsOf(diskimage[key]) !== undefined) continue;
      const reason = 'has an unmatched quote or backslash: builds fail';
      yield { pointer: `${pointer}/${key}`, severity: 'job-error', reason, remedy: 'close or remove it' };
    }
    yield* variableDiagnostics(diskimage['env-vars'], `${pointer}/env-vars`);
  }
}

/**
 * Warns about a name that is invalid in image-ids. Only a warning, because the nodepool daemon's image-ids are numbers.
 */
export function* imageIdDiagnostics(name: string, pointer: string): Iterable<Diagnostic> {
  const problem = imageIdError(`${name}${ID_END}`);
  if (problem === undefined || !isFunctionSubject(name)) return;
  const reason = `leads to image-ids that builders reject: each ${problem}`;
  yield { pointer, severity: 'warning', reason, remedy: 'choose a plain name' };
}

function* variableDiagnostics(variables: unknown, pointer: string): Iterable<Diagnostic> {
  if (variables === undefined || variables === null) return;
  if (!isMapping(variables)) {
    const remedy = 'write "NAME: value" pairs, indented below it, or remove it';
    yield { pointer, severity: 'warning', reason: 'is not a mapping, and is ignored', remedy };
    return;
  }
  for (const [name, value] of Object.entries(variables)) {
    const [problem, remedy] = variableError(name, value)?.split('; ') ?? [];
    if (problem === undefined || remedy === undefined) continue;
    const reason = `${problem}: builds fail`;
    yield { pointer: `${pointer}/${escapePointer(name)}`, severity: 'job-error', reason, remedy };
  }
}

/** Reports unknown builders, and names that are used twice or that a Gearman function name cannot contain. */
export function* diskImageNameDiagnostics({
  diskimages,
  modules: { builders },
  lineOf,
}: ConfigurationParts): Iterable<Diagnostic> {
  const lists = Map.groupBy(diskimages, ({ list }) => list);
  const listed = new Set(lists.get('diskimages')?.map(({ name }) => name));
  for (const [list, entries] of lists) {
    const names = entries.map(({ namePointer: pointer, name }) => ({ pointer, name }));
    yield* nameDiagnostics(names, lineOf);
    for (const { pointer, name } of names) {
      if (list === 'diskimages' || !listed.has(name)) continue;
      const reason = `"${name}" is also the name of one of diskimages`;
      yield { pointer, reason, remedy: 'rename or remove one of the two' };
    }
  }
  for (const { pointer, source, module } of lists.get('diskimages') ?? []) {
    const { builder } = source;
    if (builder === undefined || module !== undefined) continue;
    const key = builders.get(builder)?.entries?.section?.key;
    const types = [...builders.values()].filter(({ entries }) => entries?.section === undefined);
    const [reason, remedy] =
      key === undefined
        ? [`"${builder}" is unknown`, `use one of ${types.map(({ type }) => type).join(', ')}`]
        : [`"${builder}" builds only images of ${key}`, `make the image one of ${key}`];
    yield { pointer: `${pointer}/builder`, reason, remedy };
  }
}

/**
 * Reports errors that the schema cannot express: errors in `validate`, missing and unused blocks, and the diagnostics
 * of modules.
 */
export function* diskImageDiagnostics(parts: ConfigurationParts): Iterable<Diagnostic> {
  for (const entry of parts.diskimages) yield* entryDiagnostics(entry, parts);
}

function* entryDiagnostics(
  { name, pointer, namePointer, source, module, values }: DiskImageEntry,
  { modules, context }: ConfigurationParts,
): Iterable<Diagnostic> {
  if (source.validate) yield* below(`${pointer}/validate`, validationDiagnostics(source.validate));
  if (module === undefined) return;
  if (module.type === DEFAULT_BUILDER) {
    for (const { type, settings } of modules.builders.values()) {
      const { required = [] }: ObjectSchema = settings;
      const key = required.find((one) => source[one] !== undefined && !(one in module.settings.properties));
      if (key === undefined) continue;
      const reason = `has no effect with the builder ${module.type}`;
      yield {
        pointer: `${pointer}/${key}`,
        reason,
        remedy: `write "builder: ${type}" next to it, or remove it`,
      };
      return;
    }
  }
  const missing = [...missingKeys(module.settings, source, `builder: ${module.type}`)];
  yield* below(pointer, missing);
  if (missing.length > 0) return;
  for (const found of module.check?.(values, { ...context, name }) ?? []) {
    yield { ...found, pointer: found.pointer === '/name' ? namePointer : pointer + found.pointer };
  }
}
