/** A node of a JSON Schema, as far as the configuration uses it. */
export interface SchemaNode {
  readonly type?: string | readonly string[];
  /** Printed in the documentation. */
  readonly description?: string;
  readonly default?: string | number | boolean;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | SchemaNode;
  /** Schemas of keys, by a regular expression of the keys. */
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly not?: SchemaNode;
  /** With `not`: text that says what to write instead. */
  readonly $comment?: string;
  readonly items?: SchemaNode;
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly const?: string;
  readonly if?: SchemaNode;
  readonly else?: SchemaNode;
}

/** Keys that belong to another part of nodepool: they are accepted, and nothing is read from them. */
export function elsewhere(...keys: readonly string[]): Record<string, SchemaNode> {
  return Object.fromEntries(keys.map((key) => [key, {}]));
}

export const NAME: SchemaNode = { type: 'string', minLength: 1 };
export const PATH: SchemaNode = { type: 'string', minLength: 1 };
/** Text that YAML may take for a number. */
export const SCALAR: SchemaNode = { type: ['string', 'number', 'null'] };
