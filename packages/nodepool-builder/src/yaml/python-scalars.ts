import {
  binaryTag,
  defineMappingTag,
  defineScalarTag,
  defineSequenceTag,
  FAILSAFE_SCHEMA,
  NOT_RESOLVED,
  nullYaml11Tag,
  type ScalarTagDefinition,
  type Schema,
  timestampTag,
} from 'js-yaml';

/** A number, boolean, date or binary value, with the result of Python's `str()` for it. */
export class PythonScalar {
  readonly value: unknown;
  readonly text: string;

  constructor(value: unknown, text: string) {
    this.value = value;
    this.text = text;
  }
}

/** Key of a merge. A quoted `<<` is text. */
const MERGE = new PythonScalar('<<', '<<');

const BOOLEAN = /^(?:(yes|Yes|YES|true|True|TRUE|on|On|ON)|no|No|NO|false|False|FALSE|off|Off|OFF)$/;

const INTEGER =
  /^[-+]?(?:0b_*[01][01_]*|0[0-7_]+|0|[1-9][\d_]*|0x_*[\da-fA-F][\da-fA-F_]*|[1-9][\d_]*(?::[0-5]?\d)+)$/;

const FLOAT =
  /^(?:[-+]?\d[\d_]*\.[\d_]*(?:[eE][-+]\d+)?|\.\d[\d_]*(?:[eE][-+]\d+)?|[-+]?\d[\d_]*(?::[0-5]?\d)+\.[\d_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

const TIME = /^(\d+)-(\d+)-(\d+)[Tt\s]+(\d+):(\d+):(\d+)(?:\.(\d*))?\s*(?:Z|([-+])(\d+)(?::(\d+))?)?$/;

/**
 * YAML 1.1 as PyYAML's SafeLoader reads it, with a {@link PythonScalar} for each scalar that is neither text nor null.
 */
export const PYYAML_SCHEMA: Schema = FAILSAFE_SCHEMA.withTags(
  nullYaml11Tag,
  scalarTag('bool', (source) => {
    const found = BOOLEAN.exec(source);
    if (found === null) return undefined;
    return found[1] === undefined ? new PythonScalar(false, 'False') : new PythonScalar(true, 'True');
  }),
  scalarTag('int', (source) => {
    if (!INTEGER.test(source)) return undefined;
    const value = toInteger(source);
    return new PythonScalar(Number(value), String(value));
  }),
  scalarTag('float', (source, isExplicit) => {
    if (!FLOAT.test(source) && !(isExplicit && /^[-+]?\d+$/.test(source))) return undefined;
    const value = toFloat(source);
    return new PythonScalar(value, floatText(value));
  }),
  scalarTag('timestamp', (source) => {
    const value = timestampTag.resolve(source, false, '');
    return value === NOT_RESOLVED ? undefined : new PythonScalar(value, timeText(source));
  }),
  scalarTag('binary', (source, isExplicit) => {
    const value = isExplicit ? binaryTag.resolve(source, true, '') : NOT_RESOLVED;
    return value === NOT_RESOLVED ? undefined : new PythonScalar(value, bytesText(value));
  }),
  scalarTag('merge-key', (source) => (source === '<<' ? MERGE : undefined)), // in js-yaml's `merge`, the first `<<` wins
  // js-yaml rejects a collection that contains itself if its tag has `finalize`.
  defineSequenceTag<unknown[], unknown>('tag:yaml.org,2002:seq', {
    create: () => [],
    addItem: (items, item) => {
      items.push(item);
    },
    finalize: (items) => items,
    identify: () => false,
  }),
  defineMappingTag<[key: unknown, value: unknown][], object>('tag:yaml.org,2002:map', {
    create: () => [],
    addPair: (pairs, key, value) => {
      pairs.push([key, value]);
      return '';
    },
    finalize: toMapping,
    has: () => false,
    keys: () => [],
    get: () => undefined,
    identify: () => false,
  }),
);

function scalarTag(
  name: string,
  read: (source: string, isExplicit: boolean) => PythonScalar | undefined,
): ScalarTagDefinition {
  return defineScalarTag(`tag:yaml.org,2002:${name}`, {
    implicit: true,
    resolve: (source, isExplicit) => read(source, isExplicit) ?? NOT_RESOLVED,
    identify: () => false,
  });
}

/**
 * Builds a mapping with PyYAML's merge order. Own keys win over merged ones, the last `<<` over earlier ones, and the
 * first mapping in a list over later ones.
 */
function toMapping(pairs: readonly (readonly [key: unknown, value: unknown])[]): object {
  const merged = pairs.flatMap(([key, value]) => (key === MERGE ? [value].flat().toReversed() : []));
  if (!merged.every(isPlainObject)) throw new Error('"<<" needs a mapping or a list of mappings');
  const own = pairs.flatMap(([key, value]) => (key === MERGE ? [] : [[keyText(key), value] as const]));
  return Object.fromEntries([...merged.flatMap((mapping) => Object.entries(mapping)), ...own]);
}

function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function keyText(key: unknown): string {
  if (key instanceof PythonScalar) return key.text;
  if (typeof key === 'string') return key;
  if (key === null) return 'None';
  throw new Error('a key must not be a list or a mapping');
}

/** Sign and digits of a number. */
function splitSign(source: string): { readonly isNegative: boolean; readonly digits: string } {
  const digits = source.replaceAll('_', '').toLowerCase();
  return { isNegative: digits.startsWith('-'), digits: digits.replace(/^[-+]/, '') };
}

function toInteger(source: string): bigint {
  const { isNegative, digits } = splitSign(source);
  const parts = digits.replace(/^0(?=\d)/, '0o').split(':');
  const value = parts.reduce((sum, part) => sum * 60n + BigInt(part), 0n);
  return isNegative ? -value : value;
}

const SPECIAL_FLOATS: Readonly<Record<string, number>> = { '.inf': Infinity, '.nan': NaN };

function toFloat(source: string): number {
  const { isNegative, digits } = splitSign(source);
  const parts = digits.split(':').toReversed();
  const value =
    SPECIAL_FLOATS[digits] ?? parts.reduce((sum, part, place) => sum + Number(part) * 60 ** place, 0);
  return isNegative ? -value : value;
}

/** Formats the shortest digits, as in JavaScript, but with a point, and with an exponent below 1e-4 and from 1e16. */
function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  const [digits = '', exponent = ''] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power < -4 || power >= 16) {
    return `${digits}e${exponent.charAt(0)}${String(Math.abs(power)).padStart(2, '0')}`;
  }
  const sign = Object.is(value, -0) ? '-' : '';
  return `${sign}${String(value)}${Number.isInteger(value) ? '.0' : ''}`;
}

function padded(text = '0'): string {
  return text.padStart(2, '0');
}

function timeText(source: string): string {
  const [, year, month, day, hour, minute, second, fraction = '', sign, hours, minutes] =
    TIME.exec(source) ?? [];
  if (year === undefined) return source; // a date
  const microseconds = fraction.slice(0, 6).padEnd(6, '0');
  const offset = `${padded(hours)}:${padded(minutes)}`;
  const zone = sign !== undefined && offset !== '00:00' ? sign + offset : '+00:00';
  return (
    `${year}-${padded(month)}-${padded(day)} ${padded(hour)}:${minute}:${second}` +
    (microseconds === '000000' ? '' : `.${microseconds}`) +
    (sign === undefined && !source.endsWith('Z') ? '' : zone)
  );
}

const BYTE_ESCAPES: Readonly<Record<string, string>> = {
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\\': '\\\\',
};

function bytesText(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('latin1');
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replaceAll(/[^ -~]|[\\']/g, (character) => {
    if (character === "'") return quote === "'" ? "\\'" : character;
    return BYTE_ESCAPES[character] ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
  return `b${quote}${escaped}${quote}`;
}
