import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, Options, ValidateFunction } from 'ajv';
import type { SettingsOf, SettingsSchema } from './settings-schema.ts';

/**
 * Creates a validator for schemas of this project. It skips two steps that take longer at each start than all
 * validation: compiling the schema of schemas (0.1 s), and optimising the generated code. ajv itself is loaded with the
 * first validator, because many commands validate nothing.
 */
export function createAjv(options: Options = {}): Ajv {
  const { Ajv: Validator } = createRequire(import.meta.url)('ajv') as typeof import('ajv');
  return new Validator({
    ...options,
    validateSchema: false,
    strictTypes: false,
    code: { optimize: false },
    formats: {
      path: true,
      directory: true,
      program: true,
      words: true,
      text: true,
      'date-time': (text: string) => !Number.isNaN(Date.parse(text)),
    },
  });
}

let ajv: Ajv | undefined;

/** Reads JSON of one schema: a record on disk, the reply of a server, the output of a program. */
export class JsonReader<const S extends SettingsSchema> {
  readonly #schema: S;
  #validate: ValidateFunction | undefined;

  constructor(schema: S) {
    this.#schema = schema;
  }

  /**
   * @param toError creates the error. Its argument names the reason and the location, and quotes nothing of the text
   * @throws Error
   */
  parse(text: string, toError: (reason: string) => Error = (reason) => new Error(reason)): SettingsOf<S> {
    try {
      return this.check(parseJson(text));
    } catch (error) {
      throw toError((error as Error).message);
    }
  }

  /**
   * Returns the value with its type.
   *
   * @param name name of the value in an error
   * @throws Error that names the location and the expected type
   */
  check(value: unknown, name = 'it'): SettingsOf<S> {
    ajv ??= createAjv();
    this.#validate ??= ajv.compile(this.#schema);
    if (this.#validate(value)) return value as SettingsOf<S>;
    throw new Error(schemaReason(this.#validate.errors?.[0], name));
  }

  /** Returns the valid ones among values from others. An invalid value of something that is not needed is ignored. */
  valid(values: readonly unknown[]): SettingsOf<S>[] {
    return values.flatMap((value) => {
      try {
        return [this.check(value)];
      } catch {
        return [];
      }
    });
  }
}

/** Parses a JSON text. @throws Error that quotes nothing of the text, unlike the error of `JSON.parse` */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('it is not JSON');
  }
}

/** Parses an ISO 8601 time to milliseconds since 1970. A time without a zone is UTC. */
export function utcTime(text: string): number {
  return Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`);
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

function schemaReason(error: ErrorObject | undefined, name: string): string {
  const { instancePath = '', keyword, params = {}, message = 'is not valid' } = error ?? {};
  const place = placeOf(instancePath, name);
  switch (keyword) {
    case 'required':
      return `${placeOf(`${instancePath}/${params.missingProperty}`, name)} is missing`;
    case 'additionalProperties':
      return `${place} has the unknown key ${JSON.stringify(params.additionalProperty)}`;
    case 'type':
      return `${place} is not ${[params.type]
        .flat()
        .flatMap((type: string) => TYPE_NAMES[type] ?? [])
        .join(' or ')}`;
    case 'const':
      return `${place} is not ${JSON.stringify(params.allowedValue)}`;
    case 'enum':
      return `${place} is not one of ${(params.allowedValues as unknown[]).join(', ')}`;
    case 'format':
      return `${place} is not a time`; // no other format restricts a text
    default:
      return `${place} ${message}`;
  }
}

/** Formats `/files/0/size` as `files[0].size`, or as `name.files[0].size` after a name other than the default. */
function placeOf(pointer: string, name: string): string {
  const keys = pointer.split('/').slice(1);
  const place = keys
    .map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key.replaceAll('~1', '/').replaceAll('~0', '~')}`))
    .join('');
  if (place === '') return name;
  return name === 'it' ? place.replace(/^\./, '') : name + place;
}
