import type { Diagnostic, ObjectSchema } from '@nodepool-builder/image-builder';
import { Cron } from 'croner';
import type { ConfigurationParts } from './parts.ts';

/** Prefixes the pointers of a node's diagnostics, so that they start at the root. */
export function* below(pointer: string, diagnostics: Iterable<Diagnostic>): Iterable<Diagnostic> {
  for (const diagnostic of diagnostics) yield { ...diagnostic, pointer: pointer + diagnostic.pointer };
}

/**
 * Reports required keys of a module that an entry lacks.
 *
 * @param module the module, such as `builder: command`
 */
export function* missingKeys(
  { required = [], properties }: ObjectSchema,
  entry: Readonly<Record<string, unknown>>,
  module: string,
): Iterable<Diagnostic> {
  for (const key of required) {
    if (entry[key] !== undefined) continue;
    const reason = `lacks the key "${key}", which ${module} needs`;
    yield { pointer: '', reason, remedy: properties[key]?.$comment ?? `add "${key}: …"` };
  }
}

/**
 * Maximum length of a name: the limit of function names in Gearman libraries, less the prefix `image-build-paused:`.
 */
const MAX_NAME_BYTES = 512 - 'image-build-paused:'.length;

/** Returns whether a name can be part of a Gearman function name. */
export function isFunctionSubject(name: string): boolean {
  return !/\p{Cc}/u.test(name) && Buffer.byteLength(name) <= MAX_NAME_BYTES;
}

interface PositionedName {
  readonly pointer: string;
  readonly name: string;
}

/** Names of the entries of a list. */
export function namesOf(
  list: string,
  entries: readonly { readonly name: string }[],
): readonly PositionedName[] {
  return entries.map(({ name }, index) => ({ pointer: `${list}/${index}/name`, name }));
}

/**
 * Reports names that are used twice, or that a Gearman function name cannot contain.
 *
 * @param lineOf returns the line of a JSON pointer
 */
export function* nameDiagnostics(
  names: readonly PositionedName[],
  lineOf: (pointer: string) => number,
): Iterable<Diagnostic> {
  const first = new Map<string, string>();
  for (const { pointer, name } of names) {
    const other = first.get(name);
    if (other !== undefined) {
      const reason = `"${name}" is already used on line ${lineOf(other)}`;
      const remedy = 'this one counts; rename or remove one of the two';
      yield { pointer, severity: 'warning', reason, remedy };
      continue;
    }
    first.set(name, pointer);
    if (isFunctionSubject(name)) continue;
    const reason = `contains a control character or is longer than ${MAX_NAME_BYTES} bytes`;
    yield { pointer, reason, remedy: 'choose a plain name' };
  }
}

/**
 * Reports times that are not cron expressions. For `cron` it is only a warning, because nodepool's builder does not
 * read it.
 */
export function* cronDiagnostics({ source }: ConfigurationParts): Iterable<Diagnostic> {
  const { cron, diskimages } = source;
  const times = [
    ...(diskimages ?? []).map(({ 'rebuild-cron': expression }, index) => ({
      expression,
      pointer: `/diskimages/${index}/rebuild-cron`,
      severity: 'error' as const,
      remedy: "write minute, hour, day, month and weekday, as '14 2 * * *', or use rebuild-age",
    })),
    {
      expression: cron?.['image-update'],
      pointer: '/cron/image-update',
      severity: 'warning' as const,
      remedy: 'correct it; until then the manager rebuilds images once a day',
    },
  ];
  for (const { expression, ...place } of times) {
    if (expression === undefined) continue;
    try {
      void new Cron(expression);
    } catch (error) {
      const reason = (error as Error).message.replaceAll(/^CronPattern: |\.$/g, '');
      yield { ...place, reason: `is not a cron expression: ${reason}` };
    }
  }
}
