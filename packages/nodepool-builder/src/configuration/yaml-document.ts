import {
  constructFromEvents,
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  YAMLException,
} from 'js-yaml';
import { PYYAML_SCHEMA } from './pyyaml-schema.ts';

/** A place in a text; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A YAML text that cannot be read at all. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  readonly position: Position;

  constructor(message: string, position: Position, options?: ErrorOptions) {
    super(message, options);
    this.position = position;
  }
}

/** A YAML document that remembers where each of its nodes stands. */
export interface YamlDocument {
  /** The document as JavaScript has it; undefined for an empty text. */
  readonly value: unknown;
  /** Where the node at a JSON pointer stands: its key in a mapping, its first character in a sequence. */
  positionOf(pointer: string): Position;
  /** Whether the node at a JSON pointer is written as a number with a point, be it `15.0`. */
  isFloat(pointer: string): boolean;
  /** Keys that stand in the same mapping a second time. */
  readonly duplicates: readonly (Position & { readonly key: string })[];
}

/** Settings of {@link parseYaml}. */
export interface YamlOptions {
  /** A key that stands in a mapping twice is refused, or the last one counts, as PyYAML has it. Default `refuse`. */
  readonly duplicateKeys?: 'refuse' | 'last';
}

/**
 * Reads one YAML 1.1 document, as PyYAML does for nodepool: `yes` is true, `010` is eight, `<<` merges.
 *
 * @throws YamlError for a text that is no YAML: a tab in the indentation, a duplicate key, an open bracket.
 */
export function parseYaml(text: string, { duplicateKeys = 'refuse' }: YamlOptions = {}): YamlDocument {
  try {
    const events = parseEvents(text, {});
    const json = duplicateKeys === 'last'; // so js-yaml calls it, for JSON.parse does the same
    const [value, ...others] = constructFromEvents(events, { source: text, schema: PYYAML_SCHEMA, json });
    const { offsets, floats, duplicates } = nodeOffsets(text, events);
    if (others.length > 0) {
      throw new YamlError('there is more than one document; keep the part before the second "---"', {
        line: 1,
        column: 1,
      });
    }
    return {
      value,
      positionOf: (pointer) => positionAt(text, nearestOffset(offsets, pointer)),
      isFloat: (pointer) => floats.has(pointer),
      duplicates: duplicates.map(({ key, offset }) => ({ key, ...positionAt(text, offset) })),
    };
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { line = 0, column = 0 } = error.mark ?? {};
    throw new YamlError(error.reason, { line: line + 1, column: column + 1 }, { cause: error });
  }
}

/** One key or index of a JSON pointer (RFC 6901, section 3). */
export function escapePointer(segment: string): string {
  return segment.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** May stand in a mapping several times. */
const MERGE_KEY = '<<';

interface OpenNode {
  readonly pointer: string;
  readonly kind: 'mapping' | 'sequence' | 'document';
  /** Of a mapping: the keys up to now. */
  readonly keys: Set<string>;
  /** Of a mapping: the key whose value comes next. */
  key?: { readonly name: string; readonly offset: number } | undefined;
  children: number;
}

const FLOAT = /^[-+]?\d[\d_]*\.\d*$/;

interface NodeOffsets {
  /** By JSON pointer. */
  readonly offsets: ReadonlyMap<string, number>;
  /** Pointers. */
  readonly floats: ReadonlySet<string>;
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
}

/** Where each node stands in the text. */
function nodeOffsets(text: string, events: readonly Event[]): NodeOffsets {
  const offsets = new Map<string, number>();
  const floats = new Set<string>();
  const duplicates: { key: string; offset: number }[] = [];
  const open: OpenNode[] = [];
  for (const event of events) {
    const parent = open.at(-1);
    if (event.type === EVENT_ID.POP) {
      open.pop();
      continue;
    }
    if (event.type === EVENT_ID.DOCUMENT) {
      open.push({ pointer: '', kind: 'document', keys: new Set(), children: 0 });
      continue;
    }
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
    if (event.type === EVENT_ID.SCALAR && FLOAT.test(getScalarValue(text, event))) floats.add(pointer);
    if (parent !== undefined) {
      parent.children += 1;
      parent.key = undefined;
    }
    if (event.type === EVENT_ID.MAPPING)
      open.push({ pointer, kind: 'mapping', keys: new Set(), children: 0 });
    if (event.type === EVENT_ID.SEQUENCE)
      open.push({ pointer, kind: 'sequence', keys: new Set(), children: 0 });
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

/** The offset of the node, or of the nearest one around it: what came in by an alias or a merge has none. */
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
