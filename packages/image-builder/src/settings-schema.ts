/**
 * A node of a JSON Schema, limited to what settings use. One description provides validation, defaults, the sentence in
 * the documentation, and, through {@link SettingsOf}, the TypeScript type. Write it with `as const satisfies
 * SettingsSchema`.
 */
export interface SettingsSchema {
  readonly type?: string | readonly string[];
  /** Sentence in the documentation. */
  readonly description?: string;
  /** Value of an absent key. */
  readonly default?: string | number | boolean;
  /**
   * Format of a text. `path`: a relative one is resolved against the directory of the configuration
   * file. `directory`: a directory. If it does not exist, `validate` warns. `program`: a path, or a name
   * without a slash, which is looked up in PATH; in a list, only the first item is a program. `words`: a list, or a
   * string that is split like in a shell. A disk image appends its words to its parent's. `date-time`: an ISO 8601 time.
   * `text`: a number in the file also counts as text, as Python's `str()` writes it.
   */
  readonly format?: 'path' | 'directory' | 'program' | 'words' | 'date-time' | 'text';
  readonly properties?: Readonly<Record<string, SettingsSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | SettingsSchema;
  /** Schemas of keys, by a regular expression for the keys. */
  readonly patternProperties?: Readonly<Record<string, SettingsSchema>>;
  readonly not?: SettingsSchema;
  /** Remedy for a value that `not` rejects, or for a missing required key. */
  readonly $comment?: string;
  /** True if a value that `not` rejects is ignored with a warning. */
  readonly deprecated?: boolean;
  readonly items?: SettingsSchema;
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly const?: string | number;
  readonly if?: SettingsSchema;
  readonly allOf?: readonly SettingsSchema[];
  readonly else?: SettingsSchema;
}

/** Schema of an object. */
export interface ObjectSchema extends SettingsSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, SettingsSchema>>;
}

export const TEXT = { type: 'string' } as const satisfies SettingsSchema;
export const NUMBER = { type: 'number' } as const satisfies SettingsSchema;

type Properties = Readonly<Record<string, SettingsSchema>>;

/** Makes the schema of an object with required and optional keys. It may have others. */
export function objectOf<
  const Required extends Properties,
  const Optional extends Properties = Readonly<Record<never, never>>,
>(required: Required, optional?: Optional) {
  return {
    type: 'object',
    required: Object.keys(required) as readonly (keyof Required & string)[],
    properties: { ...required, ...optional } as Required & Optional,
  } as const;
}

/** TypeScript type of the values that a schema accepts, including the defaults. */
export type SettingsOf<S> = S extends { enum: readonly (infer E)[] }
  ? E
  : S extends { const: infer C }
    ? C
    : S extends { type: readonly (infer T)[] }
      ? T extends unknown
        ? ValueOf<S, T>
        : never
      : S extends { type: infer T }
        ? ValueOf<S, T>
        : unknown;

interface Scalars {
  readonly string: string;
  readonly number: number;
  readonly integer: number;
  readonly boolean: boolean;
  readonly null: null;
}

type ValueOf<S, T> = T extends keyof Scalars
  ? Scalars[T]
  : T extends 'array'
    ? readonly (S extends { items: infer I } ? SettingsOf<I> : unknown)[]
    : T extends 'object'
      ? S extends { properties: infer P }
        ? PropertiesOf<P, S extends { required: readonly (infer R)[] } ? R : never>
        : Readonly<Record<string, S extends { additionalProperties: infer A } ? SettingsOf<A> : unknown>>
      : unknown;

type PropertiesOf<P, R> = {
  readonly [K in keyof P as IsPresent<K, P[K], R> extends true ? K : never]: SettingsOf<P[K]>;
} & {
  readonly [K in keyof P as IsPresent<K, P[K], R> extends true ? never : K]?: SettingsOf<P[K]>;
};

type IsPresent<K, S, R> = K extends R ? true : S extends { default: unknown } ? true : false;

/**
 * Fills in the defaults of a valid value and makes its paths absolute.
 *
 * @param schema the schema for which the value is valid
 * @param absolute resolves a relative path
 */
export function readSettings<const S extends SettingsSchema>(
  schema: S,
  value: unknown,
  absolute: (path: string) => string,
): SettingsOf<S> {
  return read(schema, value, absolute) as SettingsOf<S>;
}

function read(schema: SettingsSchema, value: unknown, absolute: (path: string) => string): unknown {
  if (value === undefined) return schema.default;
  if (typeof value === 'string') return readText(schema, value, absolute);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const { format, items = {} } = schema;
    return value.map((item, index) => {
      const isProgram = format === 'program' && index === 0;
      return read(isProgram ? { ...items, format } : items, item, absolute);
    });
  }
  const { properties = {} } = schema;
  const settings: Record<string, unknown> = { ...value };
  for (const [key, property] of Object.entries(properties)) {
    const setting = read(property, settings[key], absolute);
    if (setting !== undefined) settings[key] = setting;
  }
  return settings;
}

function readText({ format }: SettingsSchema, text: string, absolute: (path: string) => string): string {
  const isPath = format === 'program' ? text.includes('/') : format === 'path' || format === 'directory';
  return isPath ? absolute(text) : text;
}

/** Converts a scalar, which YAML may have parsed as a number, to text; undefined if it is empty. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}
