import { readFile } from 'node:fs/promises';
import {
  boolYaml11Tag,
  constructFromEvents,
  EVENT_ID,
  type Event,
  getScalarValue,
  intYaml11Tag,
  NOT_RESOLVED,
  parseEvents,
  type ScalarTagDefinition,
  YAML11_SCHEMA,
  YAMLException,
} from 'js-yaml';
import { ConfigurationError, escapePointer, type Position, pointerSegments } from './diagnostic.ts';

/** A YAML document with the positions of its nodes. */
export interface YamlDocument {
  readonly file: string;
  /** Undefined for an empty text. */
  readonly value: unknown;
  /** Position of the node at a JSON pointer: its key in a mapping, its first character in a sequence. */
  positionOf(pointer: string): Position;
  /** Keys that a mapping already has. */
  readonly duplicates: readonly (Position & { readonly key: string })[];
}

/** Settings of {@link parseYaml}. */
export interface YamlOptions {
  /** A second key of the same name is an error, or replaces the first, as in PyYAML. Default `refuse`. */
  readonly duplicateKeys?: 'refuse' | 'last';
  /** JSON pointers of values that become text: of a number with a point, such as `15.0`, JavaScript would write 15. */
  readonly texts?: RegExp;
}

/**
 * Reads a file of YAML.
 *
 * @param option that names such a file on the command line: `-c`
 * @throws ConfigurationError if the file cannot be read, or is not YAML
 */
export async function readYaml(file: string, option: string, options?: YamlOptions): Promise<YamlDocument> {
  return parseYaml(file, await readText(file, option), options);
}

/**
 * Reads a file.
 *
 * @param option that names such a file on the command line: `-c`
 * @throws ConfigurationError
 */
export async function readText(file: string, option: string): Promise<string> {
  return await readFile(file, 'utf8').catch((cause: Error) => {
    const reason = `the file cannot be read: ${cause.message}`;
    throw unreadable(file, START, reason, `name the right one with ${option} FILE`, cause);
  });
}

/**
 * Parses one YAML 1.1 document, as PyYAML does for nodepool: `yes` is true, `010` is eight, `<<` merges.
 *
 * @param file for messages
 * @throws ConfigurationError if the text is not YAML: a tab in the indentation, a duplicate key, an open bracket
 */
export function parseYaml(
  file: string,
  text: string,
  { duplicateKeys, texts }: YamlOptions = {},
): YamlDocument {
  try {
    const events = parseEvents(text, {});
    const json = duplicateKeys === 'last'; // js-yaml's name, after JSON.parse
    const [value, ...others] = constructFromEvents(events, { source: text, schema: PYYAML_SCHEMA, json });
    if (others.length > 0) {
      const reason = 'there is more than one document; keep the part before the second "---"';
      throw unreadable(file, START, reason, 'correct the YAML there');
    }
    const { offsets, floats, duplicates } = nodeOffsets(text, events);
    for (const pointer of floats) if (texts?.test(pointer)) toFloatText(value, pointer);
    return {
      file,
      value,
      positionOf: (pointer) => positionAt(text, nearestOffset(offsets, pointer)),
      duplicates: duplicates.map(({ key, offset }) => ({ key, ...positionAt(text, offset) })),
    };
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { line = 0, column = 0 } = error.mark ?? {};
    const remedy = /\btab\b/.test(error.reason) ? 'indent with spaces' : 'correct the YAML there';
    throw unreadable(file, { line: line + 1, column: column + 1 }, error.reason, remedy, error);
  }
}

const START: Position = { line: 1, column: 1 };

/** Error of a file that has no usable document. */
export function unreadable(
  file: string,
  position: Position,
  reason: string,
  remedy: string,
  cause?: Error,
): ConfigurationError {
  return new ConfigurationError(file, [{ ...position, severity: 'error', reason, remedy }], { cause });
}

/** YAML 1.1 as PyYAML reads it: `y` and `n` are text, and so is `01:30`. */
const PYYAML_SCHEMA = YAML11_SCHEMA.withTags(
  textWhere(/^[yn]$/i, boolYaml11Tag),
  textWhere(/^[-+]?0[0-9_]*:/, intYaml11Tag),
);

function textWhere<T>(pattern: RegExp, tag: ScalarTagDefinition<T>): ScalarTagDefinition<T> {
  return {
    ...tag,
    resolve: (source, isExplicit, name) =>
      pattern.test(source) ? NOT_RESOLVED : tag.resolve(source, isExplicit, name),
  };
}

/** Replaces a number by the text that Python writes for it. */
function toFloatText(document: unknown, pointer: string): void {
  const segments = pointerSegments(pointer);
  const key = segments.pop() ?? '';
  type Fields = Record<string, unknown> | null | undefined; // missing if a duplicate key replaced it
  const fields = segments.reduce<unknown>((node, segment) => (node as Fields)?.[segment], document) as Fields;
  if (fields && Number.isInteger(fields[key])) fields[key] = `${String(fields[key])}.0`;
}

/** A mapping may have several. */
const MERGE_KEY = '<<';

interface OpenNode {
  readonly pointer: string;
  readonly kind: 'mapping' | 'sequence' | 'document';
  /** Keys so far, of a mapping. */
  readonly keys: Set<string>;
  /** Key of the next value, of a mapping. */
  key?: { readonly name: string; readonly offset: number } | undefined;
  children: number;
}

const FLOAT = /^[-+]?\d[\d_]*\.\d*$/;

interface NodeOffsets {
  /** By JSON pointer. */
  readonly offsets: ReadonlyMap<string, number>;
  /** JSON pointers of numbers with a point. */
  readonly floats: readonly string[];
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
}

function nodeOffsets(text: string, events: readonly Event[]): NodeOffsets {
  const offsets = new Map<string, number>();
  const floats: string[] = [];
  const duplicates: { key: string; offset: number }[] = [];
  const open: OpenNode[] = [];
  const push = (pointer: string, kind: OpenNode['kind']): void => {
    open.push({ pointer, kind, keys: new Set(), children: 0 });
  };
  for (const event of events) {
    const parent = open.at(-1);
    if (event.type === EVENT_ID.POP) open.pop();
    if (event.type === EVENT_ID.DOCUMENT) push('', 'document');
    if (event.type === EVENT_ID.POP || event.type === EVENT_ID.DOCUMENT) continue;
    const offset = startOf(event);
    if (parent?.kind === 'mapping' && parent.key === undefined) {
      const name = event.type === EVENT_ID.SCALAR ? getScalarValue(text, event) : '';
      if (parent.keys.has(name) && name !== MERGE_KEY) duplicates.push({ key: name, offset });
      parent.keys.add(name);
      parent.key = { name, offset };
      continue;
    }
    const pointer = parent === undefined ? '' : childPointer(parent);
    offsets.set(pointer, parent?.key?.offset ?? offset);
    if (event.type === EVENT_ID.SCALAR && FLOAT.test(getScalarValue(text, event))) floats.push(pointer);
    if (parent !== undefined) {
      parent.children += 1;
      parent.key = undefined;
    }
    if (event.type === EVENT_ID.MAPPING) push(pointer, 'mapping');
    if (event.type === EVENT_ID.SEQUENCE) push(pointer, 'sequence');
  }
  return { offsets, floats, duplicates };
}

function childPointer(parent: OpenNode): string {
  if (parent.kind === 'document') return '';
  return `${parent.pointer}/${parent.key === undefined ? parent.children : escapePointer(parent.key.name)}`;
}

type NodeEvent = Exclude<Event, { type: typeof EVENT_ID.POP | typeof EVENT_ID.DOCUMENT }>;

function startOf(event: NodeEvent): number {
  const starts =
    event.type === EVENT_ID.ALIAS
      ? [event.anchorStart]
      : [event.anchorStart, event.tagStart, event.type === EVENT_ID.SCALAR ? event.valueStart : event.start];
  return Math.min(...starts.filter((start) => start >= 0));
}

/** Offset of a node, or of its nearest ancestor: nodes of aliases and merges have none. */
function nearestOffset(offsets: ReadonlyMap<string, number>, pointer: string): number {
  for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
    const offset = offsets.get(at);
    if (offset !== undefined) return offset;
  }
  return offsets.get('') ?? 0;
}

function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}
