import type { SettingsSchema } from '@nodepool-builder/image-builder';
import { PythonScalar } from './python-scalars.ts';

type Mapping = Readonly<Record<string, unknown>>;

/**
 * Converts the scalars of a document as nodepool did on use. Where the schema requires text, a number, date or boolean
 * becomes the result of Python's `str()`. Where it requires a number, text becomes a number if Python's `int()` or
 * `float()` accepts it.
 *
 * @param node with {@link PythonScalar}s
 */
export function fitScalars(node: unknown, schema: SettingsSchema = {}): unknown {
  const types = [schema.type ?? []].flat();
  const takesNumbers = types.includes('number') || types.includes('integer');
  const takesNumbersAsText = schema.format === 'text' || (types.includes('string') && takesNumbers);
  if (node instanceof PythonScalar) return takesNumbersAsText ? node.text : node.value;
  if (typeof node === 'string') return (types.includes('string') ? undefined : toNumber(node, types)) ?? node;
  if (Array.isArray(node)) return node.map((item) => fitScalars(item, schema.items));
  if (typeof node !== 'object' || node === null) return node;
  const { properties = {}, additionalProperties } = applicableSchema(node as Mapping, schema);
  const others = typeof additionalProperties === 'object' ? additionalProperties : {};
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [
      key,
      fitScalars(value, Object.hasOwn(properties, key) ? properties[key] : others),
    ]),
  );
}

/** Returns the schema with the `else` in its `allOf` that applies to a mapping. */
function applicableSchema(node: Mapping, schema: SettingsSchema): SettingsSchema {
  return { ...schema, ...schema.allOf?.find(({ if: condition = {} }) => !meets(node, condition))?.else };
}

/** Returns whether a mapping has the keys of a condition, as text. */
function meets(node: Mapping, { not, required = [] }: SettingsSchema): boolean {
  return not === undefined ? required.every((key) => typeof node[key] === 'string') : !meets(node, not);
}

/** `int()` and `float()` allow spaces around a number, and underscores between digits. */
const NUMBERS: Readonly<Record<string, RegExp>> = {
  integer: /^\s*[-+]?\d+(?:_\d+)*\s*$/,
  number: /^\s*[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:e[-+]?\d+)?\s*$/i,
};

function toNumber(text: string, types: readonly string[]): number | undefined {
  if (!types.some((type) => NUMBERS[type]?.test(text))) return undefined;
  const value = Number(text.replaceAll(/(?<=\d)_(?=\d)/g, ''));
  return Number.isFinite(value) ? value : undefined;
}
