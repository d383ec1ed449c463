import type { SettingsSchema } from '@nodepool-builder/image-builder';
import { createAjv, nearestName } from '@nodepool-builder/image-builder/internal';
import type { DefinedError, ErrorObject } from 'ajv';
import { ConfigurationError, escapePointer, humanPath, type LocatedDiagnostic } from './diagnostic.ts';
import { isMapping, type YamlDocument } from './yaml-document.ts';

/**
 * Validates a document with a JSON Schema.
 *
 * @returns the warnings
 * @throws ConfigurationError
 */
export function checkSchema(document: YamlDocument, schema: SettingsSchema): readonly LocatedDiagnostic[] {
  const diagnostics = schemaDiagnostics(document, schema);
  if (diagnostics.every(({ severity }) => severity === 'warning')) return diagnostics;
  throw new ConfigurationError(document.file, diagnostics);
}

/** Returns the diagnostics of a JSON Schema for a document, in the order of the file. */
export function schemaDiagnostics(
  document: YamlDocument,
  schema: SettingsSchema,
): readonly LocatedDiagnostic[] {
  const options = { allErrors: true, verbose: true, allowUnionTypes: true, strictTypes: false };
  const validate = createAjv(options).compile(relevantPart(schema, [document.value]));
  if (validate(document.value)) return [];
  return (
    (validate.errors ?? [])
      // `propertyNames` and the schema of `else` report the same error.
      .filter(({ propertyName, keyword }) => propertyName === undefined && keyword !== 'if')
      .map((error) => toDiagnostic(error, document))
      .toSorted((a, b) => a.line - b.line || a.column - b.column)
  );
}

/**
 * Returns a schema in which unused keys accept everything, because compiling the schemas of all keys takes ten times as
 * long.
 */
function relevantPart(schema: SettingsSchema, values: readonly unknown[]): SettingsSchema {
  const { properties, items } = schema;
  const mappings = values.filter(isMapping);
  const relevantProperty = ([key, property]: [string, SettingsSchema]): [string, SettingsSchema] => {
    const present = mappings.flatMap((value) => (Object.hasOwn(value, key) ? [value[key]] : []));
    return [key, present.length === 0 ? {} : relevantPart(property, present)];
  };
  return {
    ...schema,
    ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(relevantProperty)) }),
    ...(items && { items: relevantPart(items, values.filter(Array.isArray).flat()) }),
  };
}

function toDiagnostic(error: ErrorObject, document: YamlDocument): LocatedDiagnostic {
  const { pointer = error.instancePath, severity = 'error', reason, remedy } = explain(error as DefinedError);
  return { ...document.positionOf(pointer), severity, reason, remedy };
}

interface Explanation {
  readonly reason: string;
  readonly remedy: string;
  readonly severity?: LocatedDiagnostic['severity'];
  /** JSON pointer of the diagnostic. Default: the location that the validator reports. */
  readonly pointer?: string;
}

/** Explains each keyword of the schemas. A value is shown only if it cannot be a secret. */
function explain(error: DefinedError): Explanation {
  const path = humanPath(error.instancePath);
  switch (error.keyword) {
    case 'type': {
      const wanted = [error.params.type].flat().filter((type) => type !== 'null');
      const [first = ''] = wanted;
      const isQuoted = typeof error.data === 'string' && TYPES[first]?.quoted?.test(error.data);
      return {
        reason: `${path} must be ${wanted.map(withArticle).join(' or ')}, but is ${kindOf(error.data)}`,
        remedy: `${TYPES[first]?.remedy ?? 'correct it'}${isQuoted ? ' without quotes' : ''}`,
      };
    }
    case 'required':
      return {
        reason: `${path} lacks the key "${error.params.missingProperty}"`,
        remedy: `add "${error.params.missingProperty}: …"`,
      };
    case 'additionalProperties': {
      const unknown = error.params.additionalProperty;
      return {
        pointer: `${error.instancePath}/${escapePointer(unknown)}`,
        severity: 'warning',
        reason: `${path} has the unknown key "${unknown}"`,
        remedy: suggestion(unknown, Object.keys(error.parentSchema?.properties ?? {})),
      };
    }
    case 'propertyNames': {
      const unknown = error.params.propertyName;
      return {
        pointer: `${error.instancePath}/${escapePointer(unknown)}`,
        reason: `${path} has the unknown key "${unknown}"`,
        remedy: `use one of ${(error.schema as { readonly enum: readonly string[] }).enum.join(', ')}`,
      };
    }
    case 'enum':
      return {
        reason: `${path} is ${JSON.stringify(error.data)}`,
        remedy: `use one of ${error.params.allowedValues.filter((value) => value !== null).join(', ')}`,
      };
    case 'not':
      return {
        severity: error.parentSchema?.deprecated === true ? 'warning' : 'error',
        reason: `${path} ${error.parentSchema?.description ?? 'is invalid'}`,
        remedy: String(error.parentSchema?.$comment),
      };
    case 'minLength':
      return { reason: `${path} is empty`, remedy: 'give it a value' };
    case 'minItems':
      return { reason: `${path} is empty`, remedy: 'write an entry, after "- "' };
    case 'minimum':
    case 'exclusiveMinimum':
    case 'maximum':
      return {
        reason: `${path} is ${String(error.data)}`,
        remedy: `use a number ${error.params.comparison} ${error.params.limit}`,
      };
    default:
      return { reason: `${path} ${error.message ?? 'is wrong'}`, remedy: 'correct it' };
  }
}

const NUMBER = /^[-+]?\d+(?:\.\d+)?$/;

interface TypeText {
  readonly name: string;
  readonly remedy: string;
  /** Matches strings that are values of the type once their quotes are gone. */
  readonly quoted?: RegExp;
}

const TYPES: Readonly<Record<string, TypeText>> = {
  string: { name: 'a string', remedy: 'put it in quotes' },
  object: { name: 'a mapping', remedy: 'write "key: value" pairs, indented below it' },
  array: { name: 'a list', remedy: 'write a list, each entry after "- "' },
  integer: { name: 'a whole number', remedy: 'write a whole number', quoted: NUMBER },
  number: { name: 'a number', remedy: 'write a number', quoted: NUMBER },
  boolean: {
    name: 'true or false',
    remedy: 'write true or false',
    quoted: /^(?:true|false|yes|no|on|off)$/i,
  },
};

function withArticle(type: string): string {
  return TYPES[type]?.name ?? type;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  return withArticle(typeof value);
}

function suggestion(unknown: string, known: readonly string[]): string {
  const nearest = nearestName(unknown, known);
  return nearest === undefined ? 'it is ignored; remove it' : `it is ignored; did you mean "${nearest}"?`;
}
