import { readFile } from 'node:fs/promises';
import type { SettingsSchema } from '@nodepool-builder/image-builder';
import {
  constructFromEvents,
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  YAMLException,
} from 'js-yaml';
import { ConfigurationError, escapePointer, type Position } from './diagnostic.ts';
import { fitScalars } from './fit-scalars.ts';
import { PYYAML_SCHEMA } from './python-scalars.ts';

/** A YAML document with the positions of its nodes. */
export interface YamlDocument {
  readonly file: string;
  /** Value of the document; undefined for an empty text. */
  readonly value: unknown;
  /** Converts the scalars to the types in a schema, see {@link fitScalars}. */
  fitted(schema: SettingsSchema): YamlDocument;
  /** Returns the position of the node at a JSON pointer: its key in a mapping, its first character in a sequence. */
  positionOf(pointer: string): Position;
  /** Second and later occurrences of a key in a mapping. */
  readonly duplicates: readonly (Position & { readonly key: string })[];
  /** Unset variables, see {@link YamlOptions.variables}. */
  readonly unset: readonly (Position & { readonly name: string })[];
}

/** Settings of {@link parseYaml}. */
export interface YamlOptions {
  /** True if a second key of the same name is an error, or replaces the first, as in PyYAML. Default `refuse`. */
  readonly duplicateKeys?: 'refuse' | 'last';
  /**
   * The environment. As in nodepool, `%(NODEPOOL_NAME)` becomes the value of that variable. Default: it is not
   * replaced.
   */
  readonly variables?: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads a YAML file.
 *
 * @param option the command-line option that names such a file: `-c`
 * @throws ConfigurationError if the file cannot be read, or is not YAML
 */
export async function readYaml(file: string, option: string, options?: YamlOptions): Promise<YamlDocument> {
  return parseYaml(file, await readText(file, option), options);
}

/**
 * Reads a file.
 *
 * @param option the command-line option that names such a file: `-c`
 * @throws ConfigurationError
 */
export async function readText(file: string, option: string): Promise<string> {
  return await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    const reason = `cannot read the file: ${cause.message}`;
    const remedy = `correct ${option} FILE`;
    const exitReason = cause.code === 'ENOENT' ? 'not-found' : 'failed';
    const diagnostic = { ...START, severity: 'error', reason, remedy } as const;
    throw new ConfigurationError(file, [diagnostic], { cause, exitReason });
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
  source: string,
  { duplicateKeys, variables }: YamlOptions = {},
): YamlDocument {
  const text = variables
    ? source.replaceAll(VARIABLE, (whole, name: string) => variables[name] ?? whole)
    : source;
  try {
    const events = parseEvents(text, {});
    const [node, ...others] = constructFromEvents(events, { source: text, schema: PYYAML_SCHEMA });
    if (others.length > 0) {
      const reason = 'the file contains more than one document; remove the part from the second "---"';
      throw unreadable(file, START, reason, 'correct the YAML there');
    }
    const { offsets, duplicates, named } = nodeOffsets(text, events);
    const [duplicate] = duplicateKeys === 'last' ? [] : duplicates;
    if (duplicate !== undefined) YAMLException.throwAt(text, duplicate.offset, 'duplicated mapping key');
    const document = {
      file,
      positionOf: (pointer: string) => positionAt(text, nearestOffset(offsets, pointer)),
      duplicates: duplicates.map(({ key, offset }) => ({ key, ...positionAt(text, offset) })),
      unset: (variables ? named : []).map(({ name, offset }) => ({ name, ...positionAt(text, offset) })),
      fitted: (schema: SettingsSchema) => ({ ...document, value: fitScalars(node, schema) }),
    };
    return document.fitted({});
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { line = 0, column = 0 } = error.mark ?? {};
    const remedy = /\btab\b/.test(error.reason) ? 'indent with spaces' : 'correct the YAML there';
    throw unreadable(file, { line: line + 1, column: column + 1 }, error.reason, remedy, error);
  }
}

/** Returns whether a value is a YAML mapping. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

const START: Position = { line: 1, column: 1 };

/** Makes the error of a file without a usable document. */
export function unreadable(
  file: string,
  position: Position,
  reason: string,
  remedy: string,
  cause?: Error,
): ConfigurationError {
  return new ConfigurationError(file, [{ ...position, severity: 'error', reason, remedy }], { cause });
}

/** A variable in nodepool.yaml. */
const VARIABLE = /%\((NODEPOOL_[^()\s]*)\)/g;

/** Key of a merge. A mapping may have several. */
const MERGE_KEY = '<<';

interface NodeOffsets {
  /** Offsets of nodes, by JSON pointer. */
  readonly offsets: ReadonlyMap<string, number>;
  readonly duplicates: readonly { readonly key: string; readonly offset: number }[];
  /** Variables in scalars. */
  readonly named: readonly { readonly name: string; readonly offset: number }[];
}

function nodeOffsets(text: string, events: readonly Event[]): NodeOffsets {
  const offsets = new Map<string, number>();
  const duplicates: { key: string; offset: number }[] = [];
  const named: { name: string; offset: number }[] = [];
  const remaining = events.values();
  /** Returns the next node; undefined at the end of a collection. */
  const nextNode = (): NodeEvent | undefined => {
    const { value: event } = remaining.next();
    if (event?.type === EVENT_ID.DOCUMENT) return nextNode();
    return event?.type === EVENT_ID.POP ? undefined : event;
  };
  /** Reads a node. Returns false at the end of a collection. */
  const readNode = (pointer: string, keyOffset?: number): boolean => {
    const event = nextNode();
    if (event === undefined) return false;
    offsets.set(pointer, keyOffset ?? startOf(event));
    if (event.type === EVENT_ID.SCALAR) {
      for (const [, name = ''] of getScalarValue(text, event).matchAll(VARIABLE))
        named.push({ name, offset: startOf(event) });
    }
    if (event.type === EVENT_ID.SEQUENCE) for (let index = 0; readNode(`${pointer}/${index}`); ) index += 1;
    if (event.type === EVENT_ID.MAPPING) readMapping(pointer);
    return true;
  };
  const readMapping = (pointer: string): void => {
    const keys = new Set<string>();
    for (let event = nextNode(); event !== undefined; event = nextNode()) {
      const offset = startOf(event);
      const key = event.type === EVENT_ID.SCALAR ? getScalarValue(text, event) : '';
      if (keys.has(key) && key !== MERGE_KEY) duplicates.push({ key, offset });
      keys.add(key);
      readNode(`${pointer}/${escapePointer(key)}`, offset);
    }
  };
  readNode('');
  return { offsets, duplicates, named };
}

type NodeEvent = Exclude<Event, { type: typeof EVENT_ID.POP | typeof EVENT_ID.DOCUMENT }>;

function startOf(event: NodeEvent): number {
  const starts =
    event.type === EVENT_ID.ALIAS
      ? [event.anchorStart]
      : [event.anchorStart, event.tagStart, event.type === EVENT_ID.SCALAR ? event.valueStart : event.start];
  return Math.min(...starts.filter((start) => start >= 0));
}

/** Returns the offset of a node, or of its nearest ancestor, because nodes of aliases and merges have none. */
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
